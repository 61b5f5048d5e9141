// The aligner of METEOR 1.5: all matches of four kinds, then a beam search for the set of matches without overlap that
// covers most words in fewest chunks.
#include "meteor_align.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace caplens::meteor {

namespace {

constexpr std::size_t beam_width = 40;

// Which words are taken, for sentences of up to 64 words …
struct NarrowBits {
    std::uint64_t bits = 0;
    explicit NarrowBits(std::size_t) {}
    bool test(std::int32_t i) const { return bits >> i & 1; }
    void set(std::int32_t i) { bits |= std::uint64_t{1} << i; }
};

// … and for longer ones.
struct WideBits {
    std::vector<std::uint64_t> bits;
    explicit WideBits(std::size_t size) : bits(size / 64 + 1, 0) {}
    bool test(std::int32_t i) const { return bits[i / 64] >> (i % 64) & 1; }
    void set(std::int32_t i) { bits[i / 64] |= std::uint64_t{1} << (i % 64); }
};

// What the search ranks by, as one number, less is better: more words, then fewer chunks, then less distance. Words of
// inexact matches count half, and the half is cut off match by match.
using Cost = std::int64_t;
constexpr Cost per_chunk = Cost{1} << 32, per_word = Cost{1} << 46;

Cost gain(const Match &match) {
    if (match.module == exact) return (match.length + match.other_length) * per_word;
    return (match.length / 2 + match.other_length / 2) * per_word;
}

std::int32_t distance(const Match &match) { return std::abs(match.start - match.other); }

constexpr std::int32_t open_end = -1;  // no chunk under way

template <class Bits>
struct Path {
    Cost cost = 0;
    std::int32_t busy_until = 0;        // first word of the reference after the last match
    std::int32_t chunk_end = open_end;  // the word of the caption that would continue the chunk
    std::int32_t last = -1;             // in the list of steps
    Bits reference_taken, caption_taken;

    bool is_free(const Match &match) const {
        for (std::int32_t i = 0; i < match.length; ++i)
            if (reference_taken.test(match.start + i)) return false;
        for (std::int32_t i = 0; i < match.other_length; ++i)
            if (caption_taken.test(match.other + i)) return false;
        return true;
    }
    void take(const Match &match) {
        for (std::int32_t i = 0; i < match.length; ++i) reference_taken.set(match.start + i);
        for (std::int32_t i = 0; i < match.other_length; ++i) caption_taken.set(match.other + i);
    }
};

// A path that goes one step further, not yet made: only those that stay in the beam are.
struct Branch {
    Cost cost;
    std::uint32_t parent;
    const Match *match;  // null: the word stays unmatched, or is covered already
};

// Keeps the list sorted, stable, at most `beam_width` long.
void keep_best(std::vector<Branch> &best, const Branch &branch) {
    if (best.size() == beam_width) {
        if (branch.cost >= best.back().cost) return;
        best.pop_back();
    }
    auto place = best.end();
    while (place != best.begin() && branch.cost < std::prev(place)->cost) --place;
    best.insert(place, branch);
}

struct Step {
    const Match *match;
    std::int32_t before;
};

template <class Bits>
using Beam = std::vector<Path<Bits>>;

}  // namespace

// What a search needs room for, kept from one pair of sentences to the next.
struct Aligner::Search {
    std::vector<Step> steps;
    std::vector<Branch> best;
    std::pair<Beam<NarrowBits>, Beam<NarrowBits>> narrow;
    std::pair<Beam<WideBits>, Beam<WideBits>> wide;
    auto &beams(NarrowBits *) { return narrow; }
    auto &beams(WideBits *) { return wide; }
};

Aligner::Aligner(const Lexicon &lexicon, Interrupt &interrupt)
    : lexicon_(lexicon),
      interrupt_(interrupt),
      present_(Paraphrases::most_words / 64, 0),
      search_(std::make_unique<Search>()) {
    // calloc, because most of it is never touched when there are few captions.
    answers_.reset(static_cast<std::uint8_t *>(std::calloc(frequent * frequent / 4, 1)));
    if (!answers_) throw std::bad_alloc();
}

Aligner::~Aligner() = default;

void Aligner::add(const Match &match) {
    matches_[match.start].push_back(match);
    for (std::int32_t i = 0; i < match.length; ++i) ++reference_cover_[match.start + i];
    for (std::int32_t i = 0; i < match.other_length; ++i) ++caption_cover_[match.other + i];
}

bool Aligner::share_synset(const Word &a, const Word &b) {
    bool is_remembered = a.number < frequent && b.number < frequent;
    std::uint8_t *answer = nullptr;
    int shift = static_cast<int>(b.number % 4 * 2);
    if (is_remembered) {
        answer = &answers_[(a.number * frequent + b.number) / 4];
        if (*answer >> shift & 1) return *answer >> shift & 2;
    }
    const auto &left = lexicon_.synsets(a), &right = lexicon_.synsets(b);
    bool is_shared = std::any_of(left.begin(), left.end(),
                                 [&](std::uint32_t set) { return std::binary_search(right.begin(), right.end(), set); });
    if (is_remembered) *answer = static_cast<std::uint8_t>(*answer | (is_shared ? 3 : 1) << shift);
    return is_shared;
}

// Per word of the reference: exact matches first, then stems, then synonyms, each in the order of the caption. The order
// decides ties in the search.
void Aligner::match_words(const Sentence &caption, const Sentence &reference, bool only_exact) {
    for (std::size_t i = 0; i < reference.size(); ++i) {
        const Word &word = reference.words[i];
        interrupt_.after(5 * caption.size());
        stems_.clear();
        synonyms_.clear();
        for (std::size_t j = 0; j < caption.size(); ++j) {
            const Word &other = caption.words[j];
            auto match = [i, j](Module module) {
                return Match{static_cast<std::int32_t>(i), static_cast<std::int32_t>(j), 1, 1, module};
            };
            if (word.key == other.key) {
                add(match(exact));
            } else if (!only_exact) {
                if (word.stem_key == other.stem_key) stems_.push_back(match(stemmed));
                if ((word.synset_bits & other.synset_bits) != 0 && share_synset(word, other))
                    synonyms_.push_back(match(synonym));
            }
        }
        for (const Match &match : stems_) add(match);
        for (const Match &match : synonyms_) add(match);
    }
}

// Phrases of `from` whose paraphrase stands in `to`. The table is looked up in both directions, so that a pair that it
// holds both ways is found twice.
void Aligner::match_paraphrases(const Sentence &from, const Sentence &to, bool from_reference) {
    auto bit = [](std::uint32_t word) { return std::uint64_t{1} << (word & 63); };
    for (const Word &word : to.words)
        if (word.paraphrase_word >= 0) present_[word.paraphrase_word >> 6] |= bit(word.paraphrase_word);
    auto size = static_cast<std::int32_t>(to.size());
    for (const Sentence::Phrase &phrase : from.phrases) {
        auto targets = lexicon_.paraphrases()->targets(phrase.node);
        interrupt_.after(targets.size());
        for (std::size_t at = 0; at < targets.size(); at += targets[at] + 1) {
            std::int32_t length = targets[at];
            const std::uint16_t *words = &targets[at + 1];
            if (!(present_[words[0] >> 6] & bit(words[0]))) continue;
            interrupt_.after(2 * to.size());
            for (std::int32_t place = 0; place + length <= size; ++place) {
                bool is_here = std::equal(
                    words, words + length, to.words.begin() + place,
                    [](std::uint16_t wanted, const Word &word) { return word.paraphrase_word == wanted; });
                if (!is_here) continue;
                if (from_reference) {
                    add({phrase.start, place, phrase.length, length, paraphrase});
                } else {
                    add({place, phrase.start, length, phrase.length, paraphrase});
                }
            }
        }
    }
    for (const Word &word : to.words)
        if (word.paraphrase_word >= 0) present_[word.paraphrase_word >> 6] = 0;
}

void Aligner::find_matches(const Sentence &caption, const Sentence &reference) {
    if (matches_.size() < reference.size()) matches_.resize(reference.size());
    for (std::size_t i = 0; i < reference.size(); ++i) matches_[i].clear();
    reference_cover_.assign(reference.size(), 0);
    caption_cover_.assign(caption.size(), 0);
    bool is_same = std::equal(caption.words.begin(), caption.words.end(), reference.words.begin(), reference.words.end(),
                              [](const Word &a, const Word &b) { return a.key == b.key; });
    match_words(caption, reference, is_same);
    if (is_same || !lexicon_.paraphrases()) return;
    match_paraphrases(reference, caption, true);
    match_paraphrases(caption, reference, false);
}

// A match that shares no word with any other belongs to every alignment.
void Aligner::fix_lonely_matches() {
    fixed_.assign(reference_cover_.size(), nullptr);
    for (std::size_t i = 0; i < fixed_.size(); ++i) {
        if (matches_[i].size() != 1) continue;
        const Match &match = matches_[i].front();
        auto lonely = [](const std::vector<std::int32_t> &cover, std::int32_t start, std::int32_t length) {
            return std::all_of(cover.begin() + start, cover.begin() + start + length, [](std::int32_t n) { return n == 1; });
        };
        if (lonely(reference_cover_, match.start, match.length) && lonely(caption_cover_, match.other, match.other_length))
            fixed_[i] = &match;
    }
}

template <class Bits>
void Aligner::search() {
    auto &[beam, next] = search_->beams(static_cast<Bits *>(nullptr));
    std::vector<Step> &steps = search_->steps;
    std::vector<Branch> &best = search_->best;
    steps.clear();
    beam.clear();
    beam.push_back({0, 0, open_end, -1, Bits(reference_cover_.size()), Bits(caption_cover_.size())});
    for (const Match *match : fixed_)
        if (match) beam.front().take(*match);

    auto size = static_cast<std::int32_t>(reference_cover_.size());
    for (std::int32_t word = 0; word < size; ++word) {
        best.clear();
        interrupt_.after(20 * beam.size() * (1 + matches_[word].size()));
        for (std::uint32_t parent = 0; parent < beam.size(); ++parent) {
            const Path<Bits> &path = beam[parent];
            auto with = [&path](const Match &match) {
                bool is_new_chunk = path.chunk_end != open_end && match.other != path.chunk_end;
                return (is_new_chunk ? per_chunk : 0) - gain(match);
            };
            if (word < path.busy_until) {
                keep_best(best, {path.cost, parent, nullptr});
            } else if (const Match *match = fixed_[word]) {
                keep_best(best, {path.cost + with(*match) + distance(*match), parent, match});
            } else {
                // METEOR adds the distance of each match to the path it branches from, not to the branch: later branches
                // and the path without a match carry the distances of all matches tried before them.
                Cost cost = path.cost;
                for (const Match &match : matches_[word]) {
                    if (!path.is_free(match)) continue;
                    keep_best(best, {cost + with(match), parent, &match});
                    cost += distance(match);
                }
                keep_best(best, {cost + (path.chunk_end != open_end ? per_chunk : 0), parent, nullptr});
            }
        }
        next.clear();
        for (const Branch &branch : best) {
            next.push_back(beam[branch.parent]);
            Path<Bits> &path = next.back();
            path.cost = branch.cost;
            if (branch.match) {
                path.take(*branch.match);
                path.busy_until = branch.match->start + branch.match->length;
                path.chunk_end = branch.match->other + branch.match->other_length;
                steps.push_back({branch.match, path.last});
                path.last = static_cast<std::int32_t>(steps.size()) - 1;
            } else if (word >= path.busy_until) {
                path.chunk_end = open_end;
            }
        }
        std::swap(beam, next);
    }
    for (Path<Bits> &path : beam) path.cost += path.chunk_end != open_end ? per_chunk : 0;
    auto winner = std::min_element(beam.begin(), beam.end(), [](const auto &a, const auto &b) { return a.cost < b.cost; });
    for (std::int32_t at = winner->last; at >= 0; at = steps[at].before) chosen_.push_back(*steps[at].match);
    std::reverse(chosen_.begin(), chosen_.end());
}

const std::vector<Match> &Aligner::align(const Sentence &caption, const Sentence &reference) {
    chosen_.clear();
    if (is_long(caption, reference)) {
        match_greedily(caption, reference);
        return chosen_;
    }
    find_matches(caption, reference);
    fix_lonely_matches();
    bool is_settled = true;
    for (std::size_t i = 0; i < fixed_.size() && is_settled; ++i) is_settled = fixed_[i] || matches_[i].empty();
    if (is_settled) {
        for (const Match *match : fixed_)
            if (match) chosen_.push_back(*match);
    } else if (caption.size() <= 64 && reference.size() <= 64) {
        search<NarrowBits>();
    } else {
        search<WideBits>();
    }
    return chosen_;
}

}  // namespace caplens::meteor
