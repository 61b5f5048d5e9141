// In how many groups of references does each n-gram stand?
#pragma once

#include "corpus.h"

namespace caplens {

// Words by id; and the longer n-grams of at least so many groups, by id from the number of words on. Mostly two: n-grams of
// one group are so many that they are not worth their memory, unless counts of several parts are to be added up.
struct DocumentFrequencies {
    std::vector<Id> words;
    std::vector<std::uint64_t> keys;
    std::vector<Id> grams;
};

DocumentFrequencies count_documents(const References& references, Id least, Interrupt& interrupt);

}  // namespace caplens
