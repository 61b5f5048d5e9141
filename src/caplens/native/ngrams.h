// N-grams as numbers, exactly: an n-gram is its first n-1 words' id and its last word, so equal ids mean equal words.
#pragma once

#include <array>

#include "texts.h"

namespace caplens {

constexpr int kLongest = 4;  // n-grams of one to four words, as in BLEU-4 and CIDEr

inline std::uint64_t gram_key(Id prefix, Id word) { return std::uint64_t{prefix} << 32 | word; }

// A hash map from 64-bit keys to 32-bit values that is cheap to empty: for one caption at a time.
class SmallMap {
public:
    void clear(std::size_t expected) {
        std::size_t capacity = 16;
        while (capacity < 2 * expected) capacity *= 2;
        slots_.assign(capacity, Slot{kEmpty, 0});
        mask_ = capacity - 1;
    }

    // The value under `key`, which is `fresh` if the key is new. Never more keys than `expected`.
    Id& at(std::uint64_t key, Id fresh) {
        Slot& slot = slots_[place(key)];
        if (slot.key == kEmpty) slot = {key, fresh};
        return slot.value;
    }

    Id find(std::uint64_t key) const {
        const Slot& slot = slots_[place(key)];
        return slot.key == kEmpty ? kNone : slot.value;
    }

private:
    static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
    struct Slot {
        std::uint64_t key;
        Id value;
    };

    std::size_t place(std::uint64_t key) const {
        std::size_t at = mix(key) & mask_;
        while (slots_[at].key != key && slots_[at].key != kEmpty) at = (at + 1) & mask_;
        return at;
    }

    std::vector<Slot> slots_;
    std::size_t mask_ = 0;
};

// The n-grams (n >= 2) of a whole reference corpus; ids count on from `first`.
class GramTable {
public:
    void start_at(Id first, std::size_t expected);
    Id intern(std::uint64_t key);
    Id find(std::uint64_t key) const;
    void prefetch(std::uint64_t key) const { __builtin_prefetch(&slots_[home(key)]); }
    Id end() const { return next_; }

    // Keys in order of id.
    std::vector<std::uint64_t> keys() const;

private:
    static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
    struct Slot {
        std::uint64_t key;
        Id id;
    };

    std::size_t home(std::uint64_t key) const { return mix(key) & (slots_.size() - 1); }
    void grow(std::size_t capacity);

    LargeVector<Slot> slots_;
    Id first_ = 0, next_ = 0;
};

// Where the levels of a text with `words` words begin in its list of n-grams: all words, all pairs, and so on. Within a
// level equal n-grams stand together, in order of first appearance, so that sums run in the order in which the official
// scorers' dictionaries run.
std::array<std::size_t, kLongest + 1> level_starts(std::size_t words);

// Puts equal ids together, first appearance first.
void group_equal(std::span<Id> ids, std::vector<std::uint64_t>& scratch);

}  // namespace caplens
