// A cheap alignment for texts that METEOR's search would take minutes and gigabytes for. No caption is that long.
#include <algorithm>

#include "meteor_align.h"

namespace caplens::meteor {

namespace {

// Pairs of words to compare, and words of one text.
constexpr std::size_t most_pairs = 1000 * 1000, most_words = 10'000;

}  // namespace

bool Aligner::is_long(const Sentence &caption, const Sentence &reference) {
    return std::max(caption.size(), reference.size()) > most_words || caption.size() * reference.size() > most_pairs;
}

// In linear time: equal words first, then equal stems; each word of the reference takes the word of the caption that
// continues its chunk, or else the first that is free.
void Aligner::match_greedily(const Sentence &caption, const Sentence &reference) {
    std::vector<bool> is_taken(caption.size()), is_done(reference.size());
    for (const Module module : {exact, stemmed}) {
        auto key = [module](const Word &word) { return module == exact ? word.key : word.stem_key; };
        struct Places {
            std::vector<std::int32_t> all;
            std::size_t next = 0;
        };
        std::unordered_map<std::int32_t, Places, NumberHash> places;
        for (std::size_t j = 0; j < caption.size(); ++j)
            if (!is_taken[j]) places[key(caption.words[j])].all.push_back(static_cast<std::int32_t>(j)), interrupt_.after(50);
        std::size_t wanted = 0;  // the word of the caption that continues the chunk
        for (std::size_t i = 0; i < reference.size(); ++i, ++wanted) {
            if (is_done[i]) continue;
            interrupt_.after(50);
            const auto found = places.find(key(reference.words[i]));
            if (found == places.end()) continue;
            auto &[all, next] = found->second;
            while (next < all.size() && is_taken[all[next]]) ++next;
            if (next == all.size()) continue;
            const bool continues = wanted < caption.size() && !is_taken[wanted] && key(caption.words[wanted]) == found->first;
            if (!continues) wanted = static_cast<std::size_t>(all[next]);
            is_taken[wanted] = is_done[i] = true;
            chosen_.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(wanted), 1, 1, module});
        }
    }
    std::sort(chosen_.begin(), chosen_.end(), [](const Match &a, const Match &b) { return a.start < b.start; });
}

}  // namespace caplens::meteor
