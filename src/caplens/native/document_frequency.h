// In how many groups of references does each n-gram stand?
#pragma once

#include "corpus.h"

namespace caplens {

// Words by id; and the longer n-grams of more than one group, by id from the number of words on. All others stand in one
// group, and there are so many of them that they are not worth their memory.
struct DocumentFrequencies {
    std::vector<Id> words;
    std::vector<std::uint64_t> keys;
    std::vector<Id> grams;
};

DocumentFrequencies count_documents(const References& references, Interrupt& interrupt);

}  // namespace caplens
