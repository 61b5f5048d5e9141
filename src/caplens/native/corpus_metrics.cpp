// The loops of BLEU, ROUGE-L and the CIDEr family; what they add up to is in caplens/metrics/.
#include <algorithm>
#include <cmath>

#include "corpus.h"

namespace caplens {

namespace {

constexpr Id kNoWords = kNone - 1;  // the n-gram that every other begins with

// How often a reference has each n-gram of a candidate, of which `grams` knows (place of the first n-1 words, last word)
// to place.
void count_shared(const SmallMap& grams, std::span<const Id> reference, std::vector<Id>& counts, Interrupt& interrupt) {
    for (std::size_t start = 0; start < reference.size(); ++start) {
        Id prefix = kNoWords;
        interrupt.in_loop(start, reference.size(), 10);
        for (std::size_t n = 1; n <= kLongest && start + n <= reference.size(); ++n) {
            prefix = grams.find(gram_key(prefix, reference[start + n - 1]));
            if (prefix == kNone) break;  // no longer n-gram can be the candidate's either
            ++counts[prefix];
        }
    }
}

// The tf-idf vectors of a candidate. Its distinct n-grams have places: words first, then pairs and so on, each in order of
// first appearance, which is the order in which the official scorers' dictionaries run and sums are made.
class CandidateVectors {
public:
    void start(std::span<const Id> words, std::span<const Id> translated) {
        words_.assign(words.begin(), words.end());
        for (Id& word : words_)
            if (word & kLocal) word = translated[word & ~kLocal];
        grams_.clear(kLongest * words_.size());
        at_word_.assign(words_.size(), kNoWords);
        keys_.clear();
        ids_.clear();
        idf_.clear();
        own_.clear();
    }

    // Finds the distinct n-grams, after those of n - 1 were looked up, and fetches what look_up() will need.
    void extend(std::size_t n, const TfIdf& weights, Interrupt& interrupt) {
        levels_[n - 1] = own_.size();
        for (std::size_t start = 0; start + n <= words_.size(); ++start) {
            interrupt.in_loop(start, words_.size(), 10);
            const Id word = words_[start + n - 1], prefix = at_word_[start], fresh = static_cast<Id>(own_.size());
            const Id place = at_word_[start] = grams_.at(gram_key(prefix, word), fresh);
            if (place == fresh) {
                own_.push_back(0);
                keys_.push_back(n == 1 ? word : gram_key(ids_[prefix], word));
                if (n > 1) weights.prefetch(keys_.back());
            }
            ++own_[place];
        }
        levels_[n] = own_.size();
    }

    void look_up(std::size_t n, const TfIdf& weights) {
        for (std::size_t at = levels_[n - 1]; at < levels_[n]; ++at) {
            if (n == 1) {
                ids_.push_back(static_cast<Id>(keys_[at]));
                idf_.push_back(weights.word_weight(ids_.back()));
                continue;
            }
            const Gram gram = weights.find(keys_[at]);
            ids_.push_back(gram.id);
            idf_.push_back(weights.weight(gram));
        }
    }

    void weigh() {
        values_.resize(own_.size());
        for (std::size_t n = 0; n < kLongest; ++n) {
            double squares = 0.0;
            for (std::size_t at = levels_[n]; at < levels_[n + 1]; ++at) {
                values_[at] = own_[at] * idf_[at];
                squares += values_[at] * values_[at];
            }
            norms_[n] = std::sqrt(squares);
        }
    }

    // Adds the cosines with a reference for n = 1..4, times a penalty.
    void compare(std::span<const Id> reference, const std::array<double, kLongest>& norms, bool clip, double penalty,
                 double* sums, Interrupt& interrupt) {
        in_reference_.assign(own_.size(), 0);
        count_shared(grams_, reference, in_reference_, interrupt);
        for (std::size_t n = 0; n < kLongest; ++n) {
            double dot = 0.0;
            for (std::size_t at = levels_[n]; at < levels_[n + 1]; ++at) {
                const double value = in_reference_[at] * idf_[at];
                dot += (clip ? std::min(values_[at], value) : values_[at]) * value;
            }
            const double norm = norms_[n] * norms[n];
            sums[n] += (norm != 0.0 ? dot / norm : dot) * penalty;
        }
    }

private:
    SmallMap grams_;                  // (place of the first n-1 words, last word) to place
    std::vector<Id> words_, at_word_;  // and the place of the n-gram that starts at each word
    std::vector<std::uint64_t> keys_;  // what the weights call each n-gram
    std::vector<Id> ids_, own_, in_reference_;
    std::vector<double> idf_, values_;
    std::array<std::size_t, kLongest + 1> levels_{};  // where each n begins among the places
    std::array<double, kLongest> norms_{};
};

}  // namespace

void bleu_counts(const Candidates& candidates, double* rows) {
    SmallMap grams;                // (id of the first n-1 words, last word) to an id within this row
    std::vector<Id> own, in_reference, most, length_of;
    Interrupt interrupt;
    for_each_row(candidates.size(), interrupt, [&](std::size_t row) {
        const std::span<const Id> words = candidates.words(row);
        double* out = rows + row * kBleuColumns;
        grams.clear(kLongest * words.size());
        own.clear();
        length_of.clear();
        for (std::size_t start = 0; start < words.size(); ++start) {
            Id prefix = kNoWords;
            interrupt.in_loop(start, words.size(), 20);
            for (std::size_t n = 1; n <= kLongest && start + n <= words.size(); ++n) {
                prefix = grams.at(gram_key(prefix, words[start + n - 1]), static_cast<Id>(own.size()));
                if (prefix == own.size()) {
                    own.push_back(0);
                    length_of.push_back(static_cast<Id>(n));
                }
                ++own[prefix];
            }
        }
        most.assign(own.size(), 0);
        std::size_t closest = 0;
        bool first = true;
        for (const Id text : candidates.texts(row)) {
            const std::span<const Id> other = candidates.references().tokens().words(text);
            in_reference.assign(own.size(), 0);
            count_shared(grams, other, in_reference, interrupt);
            for (std::size_t gram = 0; gram < own.size(); ++gram) most[gram] = std::max(most[gram], in_reference[gram]);
            const auto distance = [&](std::size_t length) {
                return length > words.size() ? length - words.size() : words.size() - length;
            };
            const std::size_t length = other.size();
            if (first || distance(length) < distance(closest) ||
                (distance(length) == distance(closest) && length < closest))
                closest = length;
            first = false;
        }
        std::fill(out, out + kBleuColumns, 0.0);
        out[0] = static_cast<double>(words.size());
        out[1] = static_cast<double>(closest);
        for (std::size_t n = 1; n <= kLongest; ++n)
            out[1 + n] = words.size() >= n ? static_cast<double>(words.size() - n + 1) : 0.0;
        for (std::size_t gram = 0; gram < own.size(); ++gram)
            out[1 + kLongest + length_of[gram]] += std::min(own[gram], most[gram]);
    });
}

namespace {

// For each token of a text a bit mask of the places where it stands.
class PlaceMasks {
public:
    void read(std::span<const Id> tokens) {
        blocks_ = (tokens.size() + 63) / 64;
        where_.clear(tokens.size());
        masks_.clear();
        places_.clear();
        if (blocks_ > kMostBlocks) return read_long(tokens);
        for (std::size_t at = 0; at < tokens.size(); ++at) {
            const Id number = where_.at(tokens[at], static_cast<Id>(masks_.size() / blocks_));
            if (number * blocks_ == masks_.size()) masks_.resize(masks_.size() + blocks_, 0);
            set(&masks_[number * blocks_], at);
        }
    }

    std::size_t blocks() const { return blocks_; }

    // Null for a token that is not there; valid until the next call.
    const std::uint64_t* find(Id token) {
        const Id number = where_.find(token);
        if (number == kNone) return nullptr;
        if (blocks_ <= kMostBlocks) return &masks_[number * blocks_];
        if (rows_[number] != kNone) return &masks_[rows_[number] * blocks_];
        for (const Id at : shown_) rare_[at / 64] = 0;
        shown_ = places_[number];
        for (const Id at : shown_) set(rare_.data(), at);
        return rare_.data();
    }

private:
    static constexpr std::size_t kMostBlocks = 64;

    static void set(std::uint64_t* mask, std::size_t at) { mask[at / 64] |= std::uint64_t{1} << (at % 64); }

    // A mask for every token would take memory with the square of the length. Only the few tokens (at most 64) that stand
    // in more places than a mask has blocks get one; that of a rare token is made when it is asked for.
    void read_long(std::span<const Id> tokens) {
        for (std::size_t at = 0; at < tokens.size(); ++at) {
            const Id number = where_.at(tokens[at], static_cast<Id>(places_.size()));
            if (number == places_.size()) places_.emplace_back();
            places_[number].push_back(static_cast<Id>(at));
        }
        rows_.assign(places_.size(), kNone);
        for (std::size_t number = 0; number < places_.size(); ++number) {
            if (places_[number].size() < blocks_) continue;
            rows_[number] = static_cast<Id>(masks_.size() / blocks_);
            masks_.resize(masks_.size() + blocks_, 0);
            for (const Id at : places_[number]) set(&masks_[rows_[number] * blocks_], at);
        }
        rare_.assign(blocks_, 0);
        shown_.clear();
    }

    std::size_t blocks_ = 0;
    SmallMap where_;                    // token to its number
    std::vector<std::uint64_t> masks_;  // by number, or by row in a long text
    std::vector<std::vector<Id>> places_;
    std::vector<Id> rows_, shown_;
    std::vector<std::uint64_t> rare_;
};

}  // namespace

void common_subsequences(const Candidates& candidates, std::int64_t* triples) {
    PlaceMasks masks;
    std::vector<std::uint64_t> state;
    const std::vector<std::int64_t> starts = candidates.pair_starts();
    Interrupt interrupt;
    for_each_row(candidates.size(), interrupt, [&](std::size_t row) {
        const std::span<const Id> tokens = candidates.pieces(row);
        masks.read(tokens);
        const std::size_t blocks = masks.blocks();
        std::int64_t* out = triples + 3 * starts[row];
        for (const Id text : candidates.texts(row)) {
            const std::span<const Id> other = candidates.references().tokens().pieces(text);
            // Bit-parallel LCS (Hyyrö 2004): a zero bit in `state` is a step of the subsequence.
            state.assign(blocks, ~std::uint64_t{0});
            for (const Id token : other) {
                interrupt.after(5 + blocks);
                const std::uint64_t* mask = masks.find(token);
                if (mask == nullptr) continue;
                std::uint64_t carry = 0;
                for (std::size_t block = 0; block < blocks; ++block) {
                    const std::uint64_t before = state[block], match = before & mask[block];
                    const std::uint64_t partial = before + carry, sum = partial + match;
                    carry = (partial < before) | (sum < partial);
                    state[block] = sum | (before - match);
                }
            }
            std::int64_t length = 0;
            for (std::size_t block = 0; block < blocks; ++block) {
                const std::size_t used = std::min<std::size_t>(64, tokens.size() - 64 * block);
                const std::uint64_t valid = used == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << used) - 1;
                length += __builtin_popcountll(~state[block] & valid);
            }
            *out++ = length;
            *out++ = static_cast<std::int64_t>(tokens.size());
            *out++ = static_cast<std::int64_t>(other.size());
        }
    });
}

void consensus(const Candidates& candidates, const TfIdf& weights, bool clip, std::span<const double> penalties, double* out) {
    Interrupt interrupt;
    // Words that only this batch has may still be in the table that the index knows.
    std::vector<Id> translated;
    for (Id word = 0; word < candidates.vocabulary().size(); ++word) {
        const Id known = weights.index().vocabulary().find(candidates.vocabulary().word(word | kLocal));
        translated.push_back(known == kNone ? word | kLocal : known);
        interrupt.after(50);
    }
    const Tokens& tokens = candidates.references().tokens();
    const std::vector<std::int64_t> starts = candidates.pair_starts();
    std::fill(out, out + kLongest * candidates.size(), 0.0);
    // What a caption needs lies anywhere in memory: some captions go together, so that one waits while others fetch.
    constexpr std::size_t together = 16;
    std::array<CandidateVectors, together> vectors;
    for_each_row((candidates.size() + together - 1) / together, interrupt, [&](std::size_t block) {
        const std::size_t first = block * together, end = std::min(first + together, candidates.size());
        const auto each = [&](auto visit) {
            for (std::size_t row = first; row < end; ++row) visit(row, vectors[row - first]);
        };
        each([&](std::size_t row, CandidateVectors& own) {
            for (const Id text : candidates.texts(row)) {
                tokens.prefetch(text);
                __builtin_prefetch(&weights.norms(text));
            }
            own.start(candidates.words(row), translated);
        });
        for (std::size_t n = 1; n <= kLongest; ++n) {
            each([&](std::size_t, CandidateVectors& own) { own.extend(n, weights, interrupt); });
            each([&](std::size_t, CandidateVectors& own) { own.look_up(n, weights); });
        }
        each([&](std::size_t row, CandidateVectors& own) {
            own.weigh();
            for (const Id text : candidates.texts(row)) __builtin_prefetch(tokens.words(text).data());
        });
        each([&](std::size_t row, CandidateVectors& own) {
            const double* penalty = penalties.data() + starts[row];
            for (const Id text : candidates.texts(row))
                own.compare(tokens.words(text), weights.norms(text), clip, *penalty++, out + kLongest * row, interrupt);
        });
    });
}

void repetitions(const Candidates& candidates, const WordRuns& runs, double* log_sums, std::int64_t* distinct,
                 std::int64_t* total) {
    // The same for the words that only this batch has.
    Vocabulary local(&runs.vocabulary());
    std::vector<std::vector<Id>> local_runs(candidates.vocabulary().size());
    Interrupt interrupt;
    for (Id word = 0; word < candidates.vocabulary().size(); ++word) {
        const std::string_view token = candidates.vocabulary().word(word | kLocal);
        runs.each(token, [&](std::string_view run) { local_runs[word].push_back(local.intern(run)); });
        interrupt.after(50 + 5 * token.size());
    }

    // log f(w) by how often a word stands too often; captions repeat words a few times.
    std::array<double, 64> logs;
    for (std::size_t excess = 0; excess < logs.size(); ++excess)
        logs[excess] = std::log(1.0 / (1.0 + static_cast<double>(excess)));

    SmallMap place;
    std::vector<Id> sequence, own, other;
    const Tokens& tokens = candidates.references().tokens();
    const std::vector<std::int64_t> starts = candidates.pair_starts();
    for_each_row(candidates.size(), interrupt, [&](std::size_t row) {
        sequence.clear();
        for (const Id token : candidates.words(row)) {
            const std::span<const Id> found = token & kLocal ? local_runs[token & ~kLocal] : runs.in_token(token);
            sequence.insert(sequence.end(), found.begin(), found.end());
        }
        interrupt.after(20 * sequence.size());
        place.clear(sequence.size());
        own.clear();
        for (const Id run : sequence) {
            const Id at = place.at(run, static_cast<Id>(own.size()));
            if (at == own.size()) own.push_back(0);
            ++own[at];
        }
        distinct[row] = static_cast<std::int64_t>(own.size());
        total[row] = static_cast<std::int64_t>(sequence.size());
        double* sums = log_sums + starts[row];
        for (const Id text : candidates.texts(row)) {
            other.assign(own.size(), 0);
            interrupt.after(5 * tokens.words(text).size());
            // The reference's tokens were just read for the cosines; its runs of words would have to be fetched.
            for (const Id token : tokens.words(text)) {
                runs.each_in_token(token, [&](Id run) {
                    const Id at = place.find(run);
                    if (at != kNone) ++other[at];
                });
            }
            double sum = 0.0;
            for (std::size_t at = 0; at < own.size(); ++at) {
                // A word that the reference lacks may still stand once.
                const Id allowed = std::max<Id>(1, other[at]);
                const Id excess = own[at] > allowed ? own[at] - allowed : allowed - own[at];
                sum += excess < logs.size() ? logs[excess] : std::log(1.0 / (1.0 + static_cast<double>(excess)));
            }
            *sums++ = sum;
        }
    });
}

}  // namespace caplens
