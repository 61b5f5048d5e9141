// An n-gram can stand in so many groups only if its first n-1 words do, and its last n-1: so each length is counted after the one
// before, and only where both parts were kept. Words are few; pairs are looked for among frequent words, and so on. What is
// counted at a time fits a share of the memory: n-grams are dealt out by their hash, one share after the other.
#include "document_frequency.h"

#include <algorithm>

namespace caplens {

namespace {

// What is noted at a word while n-grams of one length are counted: the id of the first n-1 words, if the n-gram that begins
// there is still to be counted; the place of its counter, with the bit kLocal; its own id, if it was kept; kNone; or this.
constexpr Id kDropped = kNone - 1;  // kept at the length before, not at this one

struct Counter {
    std::uint64_t key = kEmptyKey;
    Id last_group = 0;  // that it was seen in; later its id
    Id groups = 0;      // with the bit kLocal once it has an id
};

class DocumentCounter {
public:
    DocumentCounter(const References& references, Id least, Interrupt& interrupt)
        : references_(references), tokens_(references.tokens()), least_(least), interrupt_(interrupt) {}

    DocumentFrequencies count() {
        if (references_.groups() >= kLocal) throw std::length_error("more than two thousand million groups of references");
        nb::gil_scoped_release released;
        count_words();
        for (std::size_t n = 2; n <= kLongest; ++n) count_level(n);
        return std::move(frequencies_);
    }

private:
    void count_words() {
        std::vector<Id>& groups = frequencies_.words;
        groups.assign(references_.vocabulary().size(), 0);
        std::vector<Id> last_group(groups.size(), 0);
        each_text_of_a_group([&](Id text, Id group) {
            for (const Id word : tokens_.words(text)) {
                groups[word] += last_group[word] != group;
                last_group[word] = group;
            }
        });
        noted_.resize(tokens_.total());
        each_text([&](Id text) {
            Id* at = noted_.data() + tokens_.start(text);
            for (const Id word : tokens_.words(text)) *at++ = groups[word] >= least_ ? word : kNone;
        });
    }

    void count_level(std::size_t n) {
        first_ = next_id();
        const std::size_t open = open_places(n);
        if (open == 0) return;
        // The counters of a share take about as much memory as the references, or what is not worth dividing.
        const std::size_t most = std::clamp(tokens_.total() / 6, std::size_t{1} << 22, std::size_t{1} << 30);
        const std::size_t shares = (open + most - 1) / most;
        for (std::size_t share = 0; share < shares; ++share) {
            room_ = open / shares + 1024;
            counters_.clear(room_);
            each_text_of_a_group([&](Id text, Id group) {
                waiting_.push_back({text, group});
                if (waiting_.size() == kTogether) count_waiting(n, share, shares);
            });
            count_waiting(n, share, shares);
            number();
        }
    }

    // Leaves the id of the first n-1 words where an n-gram of enough groups may begin.
    std::size_t open_places(std::size_t n) {
        std::size_t open = 0;
        each_text([&](Id text) {
            const std::size_t words = tokens_.words(text).size();
            Id* at = noted_.data() + tokens_.start(text);
            for (std::size_t place = 0; place < words; ++place) {
                const bool was_kept = at[place] < kDropped;
                const bool is_open = was_kept && place + n <= words && at[place + 1] < kDropped;
                if (!is_open) at[place] = was_kept ? kDropped : kNone;
                open += is_open;
            }
        });
        return open;
    }

    // Counters lie anywhere in memory: some texts are counted together, so that one waits while others fetch.
    void count_waiting(std::size_t n, std::size_t share, std::size_t shares) {
        new_.clear();
        for (const Waiting& next : waiting_) fetch(next.text, n, share, shares);
        for (const New& gram : new_) {
            const std::size_t place = counters_.find(gram.key, gram.hash);
            noted_[gram.at] = static_cast<Id>(place) | kLocal;
            if (counters_[place].key == gram.key) continue;
            // More than a share can only be if the hash is not what it should be.
            if (room_-- == 0) throw std::length_error("too many n-grams in one share");
            counters_[place].key = gram.key;
        }
        for (const auto& [text, group] : waiting_) {
            const std::size_t start = tokens_.start(text);
            for (const Id noted : std::span(noted_).subspan(start, tokens_.words(text).size())) {
                if (!has_counter(noted)) continue;
                Counter& counter = counters_[noted & ~kLocal];
                counter.groups += counter.last_group != group;
                counter.last_group = group;
            }
        }
        waiting_.clear();
    }

    void fetch(Id text, std::size_t n, std::size_t share, std::size_t shares) {
        const std::span<const Id> words = tokens_.words(text);
        const std::size_t start = tokens_.start(text);
        for (std::size_t at = 0; at + n <= words.size(); ++at) {
            const Id noted = noted_[start + at];
            if (has_counter(noted)) counters_.prefetch(noted & ~kLocal);
            if (noted >= first_) continue;
            const std::uint64_t key = gram_key(noted, words[at + n - 1]), hash = hash_number(key);
            // Counters are placed by the upper bits of the hash.
            if (shares > 1 && (hash & 0xFFFF) * shares >> 16 != share) continue;
            counters_.prefetch(counters_.home(hash));
            new_.push_back({key, hash, start + at});
        }
    }

    // What was counted gets its id or is dropped.
    void number() {
        constexpr std::size_t ahead = 64;
        for (std::size_t at = 0; at < noted_.size(); ++at) {
            if (at + ahead < noted_.size() && has_counter(noted_[at + ahead])) counters_.prefetch(noted_[at + ahead] & ~kLocal);
            if (!has_counter(noted_[at])) continue;
            interrupt_.after(5);
            Counter& counter = counters_[noted_[at] & ~kLocal];
            if (counter.groups >= least_ && (counter.groups & kLocal) == 0) {
                const Id id = next_id();
                frequencies_.keys.push_back(counter.key);
                frequencies_.grams.push_back(counter.groups);
                counter.last_group = id;
                counter.groups |= kLocal;
            }
            noted_[at] = counter.groups >= least_ ? counter.last_group : kDropped;
        }
    }

    static bool has_counter(Id noted) { return noted >= kLocal && noted < kDropped; }

    Id next_id() const {
        const std::size_t id = frequencies_.words.size() + frequencies_.keys.size();
        if (id >= kLocal) throw std::length_error("more than two thousand million distinct n-grams");
        return static_cast<Id>(id);
    }

    template <class Visit>
    void each_text(Visit visit) {
        for (std::size_t text = 0; text < tokens_.size(); ++text) {
            visit(static_cast<Id>(text));
            interrupt_.after(20 + 5 * tokens_.words(static_cast<Id>(text)).size());
        }
    }

    // Groups are numbered from 1.
    template <class Visit>
    void each_text_of_a_group(Visit visit) {
        for (std::size_t group = 0; group < references_.groups(); ++group)
            for (const Id text : references_.texts(group)) {
                visit(text, static_cast<Id>(group + 1));
                interrupt_.after(20 + 20 * tokens_.words(text).size());
            }
    }

    static constexpr std::size_t kTogether = 16;
    struct Waiting {
        Id text, group;
    };
    struct New {
        std::uint64_t key, hash;
        std::size_t at;
    };

    const References& references_;
    const Tokens& tokens_;
    const Id least_;  // groups that an n-gram must stand in to be kept
    Interrupt& interrupt_;
    DocumentFrequencies frequencies_;
    LargeVector<Id> noted_;  // by word of the references
    GramSlots<Counter> counters_;
    std::size_t room_ = 0;   // for so many more counters
    Id first_ = 0;           // id of the length that is being counted
    std::vector<Waiting> waiting_;
    std::vector<New> new_;  // n-grams of these texts that have no counter yet
};

}  // namespace

DocumentFrequencies count_documents(const References& references, Id least, Interrupt& interrupt) {
    return DocumentCounter(references, least, interrupt).count();
}

}  // namespace caplens
