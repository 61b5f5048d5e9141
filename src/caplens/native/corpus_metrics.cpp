// The loops of BLEU, ROUGE-L and the CIDEr family; what they add up to is in caplens/metrics/.
#include <algorithm>
#include <cmath>

#include "corpus.h"

namespace caplens {

void bleu_counts(const Candidates& candidates, double* rows) {
    SmallMap grams;                // (id of the first n-1 words, last word) to an id within this row
    std::vector<Id> own, in_reference, most, length_of;
    for_each_row(candidates.size(), [&](std::size_t row) {
        const std::span<const Id> words = candidates.words(row);
        double* out = rows + row * kBleuColumns;
        grams.clear(kLongest * words.size());
        own.clear();
        length_of.clear();
        for (std::size_t start = 0; start < words.size(); ++start) {
            Id prefix = kNone - 1;  // the empty n-gram
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
            for (std::size_t start = 0; start < other.size(); ++start) {
                Id prefix = kNone - 1;
                for (std::size_t n = 1; n <= kLongest && start + n <= other.size(); ++n) {
                    prefix = grams.find(gram_key(prefix, other[start + n - 1]));
                    if (prefix == kNone) break;  // no longer n-gram can be the candidate's either
                    ++in_reference[prefix];
                }
            }
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

void common_subsequences(const Candidates& candidates, std::int64_t* triples) {
    SmallMap where;                     // token to the number of its bit mask
    std::vector<std::uint64_t> masks;   // for each distinct token the places where the candidate has it
    std::vector<std::uint64_t> state;
    const std::vector<std::int64_t> starts = candidates.pair_starts();
    for_each_row(candidates.size(), [&](std::size_t row) {
        const std::span<const Id> tokens = candidates.pieces(row);
        const std::size_t blocks = (tokens.size() + 63) / 64;
        where.clear(tokens.size());
        masks.clear();
        for (std::size_t at = 0; at < tokens.size(); ++at) {
            const Id mask = where.at(tokens[at], static_cast<Id>(masks.size() / blocks));
            if (mask * blocks == masks.size()) masks.resize(masks.size() + blocks, 0);
            masks[mask * blocks + at / 64] |= std::uint64_t{1} << (at % 64);
        }
        std::int64_t* out = triples + 3 * starts[row];
        for (const Id text : candidates.texts(row)) {
            const std::span<const Id> other = candidates.references().tokens().pieces(text);
            // Bit-parallel LCS (Hyyrö 2004): a zero bit in `state` is a step of the subsequence.
            state.assign(blocks, ~std::uint64_t{0});
            for (const Id token : other) {
                const Id mask = where.find(token);
                if (mask == kNone) continue;
                std::uint64_t carry = 0;
                for (std::size_t block = 0; block < blocks; ++block) {
                    const std::uint64_t before = state[block], match = before & masks[mask * blocks + block];
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

void cosines(const Candidates& candidates, const NgramIndex& index, std::span<const double> idf, double unseen, bool clip,
             double* out) {
    // Words that only this batch has may still be in the table that the index knows.
    std::vector<Id> translated;
    for (Id word = 0; word < candidates.vocabulary().size(); ++word) {
        const Id known = index.vocabulary().find(candidates.vocabulary().word(word | kLocal));
        translated.push_back(known == kNone ? word | kLocal : known);
    }
    Grams grams;
    SmallMap unknown, place;
    std::vector<std::uint64_t> scratch;
    std::vector<Id> words;
    std::vector<double> own, reference;
    std::array<std::size_t, kLongest + 1> distinct{};  // where each level begins among the candidate's distinct n-grams
    const std::vector<std::int64_t> starts = candidates.pair_starts();

    const auto weight = [&](Id id) { return id & kLocal ? unseen : idf[id]; };
    // Visits distinct n-grams of one level as (id, term frequency).
    const auto each_distinct = [](std::span<const Id> ids, auto visit) {
        for (std::size_t at = 0; at < ids.size();) {
            const Id id = ids[at];
            std::size_t end = at + 1;
            while (end < ids.size() && ids[end] == id) ++end;
            visit(id, static_cast<double>(end - at));
            at = end;
        }
    };
    for_each_row(candidates.size(), [&](std::size_t row) {
        // The references' n-grams lie anywhere in memory: ask for all of them before the first is needed.
        for (const Id text : candidates.texts(row)) index.prefetch(text);
        words.assign(candidates.words(row).begin(), candidates.words(row).end());
        for (Id& word : words)
            if (word & kLocal) word = translated[word & ~kLocal];
        index.look_up(words, grams, unknown, scratch);
        for (const Id text : candidates.texts(row))
            for (const Id id : index.ids(text)) __builtin_prefetch(&idf[id]);
        place.clear(grams.ids.size());
        own.clear();
        std::array<double, kLongest> own_norm{};
        for (std::size_t n = 0; n < kLongest; ++n) {
            distinct[n] = own.size();
            double squares = 0.0;
            each_distinct({grams.ids.data() + grams.starts[n], grams.starts[n + 1] - grams.starts[n]},
                          [&](Id id, double frequency) {
                              place.at(id, static_cast<Id>(own.size()));
                              own.push_back(frequency * weight(id));
                              squares += own.back() * own.back();
                          });
            own_norm[n] = std::sqrt(squares);
        }
        distinct[kLongest] = own.size();

        double* values = out + kLongest * starts[row];
        for (const Id text : candidates.texts(row)) {
            const std::span<const Id> ids = index.ids(text);
            const auto levels = level_starts(candidates.references().tokens().words(text).size());
            reference.assign(own.size(), 0.0);
            for (std::size_t n = 0; n < kLongest; ++n) {
                double squares = 0.0;
                each_distinct(ids.subspan(levels[n], levels[n + 1] - levels[n]), [&](Id id, double frequency) {
                    const double value = frequency * idf[id];
                    squares += value * value;
                    const Id same = place.find(id);
                    if (same != kNone) reference[same] = value;
                });
                const double norm = own_norm[n] * std::sqrt(squares);
                double dot = 0.0;
                for (std::size_t at = distinct[n]; at < distinct[n + 1]; ++at)
                    dot += (clip ? std::min(own[at], reference[at]) : own[at]) * reference[at];
                *values++ = norm != 0.0 ? dot / norm : dot;
            }
        }
    });
}

void repetitions(const Candidates& candidates, const WordRuns& runs, double* log_sums, std::int64_t* distinct,
                 std::int64_t* total) {
    // The same for the words that only this batch has.
    Vocabulary local(&runs.vocabulary());
    std::vector<std::vector<Id>> local_runs(candidates.vocabulary().size());
    for (Id word = 0; word < candidates.vocabulary().size(); ++word)
        runs.each(candidates.vocabulary().word(word | kLocal),
                  [&](std::string_view run) { local_runs[word].push_back(local.intern(run)); });

    SmallMap place;
    std::vector<Id> sequence, own, other;
    const std::vector<std::int64_t> starts = candidates.pair_starts();
    for_each_row(candidates.size(), [&](std::size_t row) {
        sequence.clear();
        for (const Id token : candidates.words(row)) {
            if (token & kLocal)
                sequence.insert(sequence.end(), local_runs[token & ~kLocal].begin(), local_runs[token & ~kLocal].end());
            else
                runs.append(token, sequence);
        }
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
            sequence.clear();
            for (const Id token : candidates.references().tokens().words(text)) runs.append(token, sequence);
            for (const Id run : sequence) {
                const Id at = place.find(run);
                if (at != kNone) ++other[at];
            }
            double sum = 0.0;
            for (std::size_t at = 0; at < own.size(); ++at) {
                const double excess = other[at] > 0 ? std::abs(static_cast<double>(own[at]) - other[at]) : own[at] - 1.0;
                if (excess > 0.0) sum += std::log(1.0 / (1.0 + excess));
            }
            *sums++ = sum;
        }
    });
}

}  // namespace caplens
