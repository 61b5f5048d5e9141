#include <algorithm>
#include <cmath>

#include "corpus.h"

namespace caplens {

namespace {

// The norms of one text's tf-idf vectors. Sums run over its distinct n-grams in order of first appearance, as those of the
// official scorers, whose dictionaries keep that order.
class Norms {
public:
    void start(std::span<const Id> words) {
        words_ = words;
        ids_.assign(words.begin(), words.end());
        first_.assign(words.begin(), words.end());
        idf_.resize(words.size());
        may_repeat_ = true;
    }

    // Fetches what norm() will need for n, after those for n - 1.
    [[gnu::always_inline]] void fetch(std::size_t n, const TfIdf& weights) const {
        if (n == 1) return;
        for (std::size_t at = 0; at + n <= words_.size(); ++at) weights.prefetch(key(at, n));
    }

    double norm(std::size_t n, const TfIdf& weights, Interrupt& interrupt) {
        if (n > words_.size()) return 0.0;
        weigh(n, weights, interrupt);
        find_repeats(n, interrupt);
        double squares = 0.0;
        for (std::size_t at = 0; at < counts_.size(); ++at) {
            if (counts_[at] == 0) continue;
            const double value = static_cast<double>(counts_[at]) * idf_[at];
            squares += value * value;
        }
        return std::sqrt(squares);
    }

    // Whether the index knows every n-gram of the texts so far.
    bool all_known() const { return all_known_; }

private:
    std::uint64_t key(std::size_t at, std::size_t n) const { return gram_key(ids_[at], words_[at + n - 1]); }

    // The idf of the n-gram that begins at each word, and its id, given the ids of those one word shorter.
    void weigh(std::size_t n, const TfIdf& weights, Interrupt& interrupt) {
        if (n == 1) {
            for (std::size_t at = 0; at < words_.size(); ++at) idf_[at] = weights.word_weight(words_[at]);
            return;
        }
        for (std::size_t at = 0; at + n <= words_.size(); ++at) {
            const Gram gram = weights.find(key(at, n));
            ids_[at] = gram.id;
            idf_[at] = weights.weight(gram);
            all_known_ = all_known_ && gram.id != kNone;
            interrupt.in_loop(at, words_.size(), 20);
        }
    }

    // How often the n-gram that begins at each word stands in the text, if it stands there first, else 0.
    void find_repeats(std::size_t n, Interrupt& interrupt) {
        const std::size_t count = words_.size() - n + 1;
        if (!may_repeat_) {  // nor did the shorter ones
            counts_.assign(count, 1);
            return;
        }
        // For each place the first with the same n-gram, given those of the n-grams one word shorter (for words: the words).
        counts_.assign(count, 0);
        shorter_.assign(first_.begin(), first_.begin() + static_cast<std::ptrdiff_t>(count));
        may_repeat_ = false;
        if (count > kShort) seen_.clear(count);
        for (std::size_t at = 0; at < count; ++at) {
            const Id last = words_[at + n - 1];
            Id first = static_cast<Id>(at);
            if (count > kShort) {
                first = seen_.at(gram_key(shorter_[at], last), first);
                interrupt.after(20);
            } else {
                for (std::size_t before = 0; before < at; ++before)
                    if (shorter_[before] == shorter_[at] && words_[before + n - 1] == last) {
                        first = static_cast<Id>(before);
                        break;
                    }
            }
            may_repeat_ = may_repeat_ || first != at;
            first_[at] = first;
            ++counts_[first];
        }
    }

    static constexpr std::size_t kShort = 48;  // up to here comparing all pairs is faster than hashing

    std::span<const Id> words_;
    std::vector<Id> ids_, first_, shorter_, counts_;
    std::vector<double> idf_;
    SmallMap seen_;
    bool may_repeat_ = true, all_known_ = true;
};

}  // namespace

TfIdf::TfIdf(std::shared_ptr<const NgramIndex> index, std::span<const double> idf, double unseen)
    : index_(std::move(index)), idf_(idf.begin(), idf.end()), unseen_(unseen) {
    const Tokens& tokens = index_->references().tokens();
    norms_.resize(tokens.size());
    Interrupt interrupt;
    // N-grams lie anywhere in memory: some texts go together, so that one waits while others fetch.
    constexpr std::size_t together = 16;
    std::array<Norms, together> norms;
    for_each_row((tokens.size() + together - 1) / together, interrupt, [&](std::size_t block) {
        const std::size_t first = block * together, end = std::min(first + together, tokens.size());
        for (std::size_t text = first; text < end; ++text) norms[text - first].start(tokens.words(static_cast<Id>(text)));
        for (std::size_t n = 1; n <= kLongest; ++n) {
            for (std::size_t text = first; text < end; ++text) norms[text - first].fetch(n, *this);
            for (std::size_t text = first; text < end; ++text)
                norms_[text][n - 1] = norms[text - first].norm(n, *this, interrupt);
        }
    });
    const bool all_known = std::all_of(norms.begin(), norms.end(), [](const Norms& some) { return some.all_known(); });
    const bool none_weighs = std::none_of(idf_.begin(), idf_.end(), [](double weight) { return weight > 0; });
    all_zero_ = none_weighs && (all_known || !(unseen_ > 0));
}

}  // namespace caplens
