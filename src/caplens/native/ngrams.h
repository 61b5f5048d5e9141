// N-grams as numbers, exactly: an n-gram is its first n-1 words' id and its last word, so equal ids mean equal words.
#pragma once

#include "texts.h"

namespace caplens {

constexpr int kLongest = 4;  // n-grams of one to four words, as in BLEU-4 and CIDEr

inline std::uint64_t gram_key(Id prefix, Id word) { return std::uint64_t{prefix} << 32 | word; }

constexpr std::uint64_t kEmptyKey = ~std::uint64_t{0};  // of no n-gram

// A hash map from 64-bit keys to 32-bit values that is cheap to empty: for one caption at a time.
class SmallMap {
public:
    void clear(std::size_t expected) {
        std::size_t capacity = 16;
        while (capacity < 2 * expected) capacity *= 2;
        slots_.assign(capacity, Slot{kEmptyKey, 0});
        mask_ = capacity - 1;
    }

    // The value under `key`, which is `fresh` if the key is new. Never more keys than `expected`.
    Id& at(std::uint64_t key, Id fresh) {
        Slot& slot = slots_[place(key)];
        if (slot.key == kEmptyKey) slot = {key, fresh};
        return slot.value;
    }

    Id find(std::uint64_t key) const {
        const Slot& slot = slots_[place(key)];
        return slot.key == kEmptyKey ? kNone : slot.value;
    }

private:
    struct Slot {
        std::uint64_t key;
        Id value;
    };

    std::size_t place(std::uint64_t key) const {
        std::size_t at = hash_number(key) & mask_;
        while (slots_[at].key != key && slots_[at].key != kEmptyKey) at = (at + 1) & mask_;
        return at;
    }

    std::vector<Slot> slots_;
    std::size_t mask_ = 0;
};

// Open addressing in an array of any size: `Slot` has a key, and the array always has an empty slot.
template <class Slot>
class GramSlots {
public:
    // Empties the array and makes room for so many n-grams.
    void clear(std::size_t grams) { slots_.assign((grams + grams / 2) / kLine * kLine + 2 * kLine, Slot{}); }

    // The place of this key, or the empty place where it belongs.
    std::size_t find(std::uint64_t key, std::uint64_t hash) const {
        std::size_t at = home(hash);
        while (slots_[at].key != key && slots_[at].key != kEmptyKey) at = at + 1 < slots_.size() ? at + 1 : 0;
        return at;
    }
    Slot& operator[](std::size_t place) { return slots_[place]; }
    const Slot& operator[](std::size_t place) const { return slots_[place]; }
    // Where to look first: from the beginning of a cache line on, as most searches then end in that line.
    std::size_t home(std::uint64_t hash) const {
        return static_cast<std::size_t>(static_cast<unsigned __int128>(hash) * (slots_.size() / kLine) >> 64) * kLine;
    }
    // Inlined, as everything that leads here: a call that only fetches has no effect that the compiler would keep it for.
    [[gnu::always_inline]] void prefetch(std::size_t place) const { __builtin_prefetch(&slots_[place], 1); }
    auto begin() const { return slots_.begin(); }
    auto end() const { return slots_.end(); }
    auto begin() { return slots_.begin(); }
    auto end() { return slots_.end(); }

private:
    static constexpr std::size_t kLine = 64 / sizeof(Slot);
    LargeVector<Slot> slots_;
};

// What is known of an n-gram (n >= 2): its id, and in how many documents it stands, as a number or as a place in a list.
struct Gram {
    Id id = kNone, frequency = 0;
};

// N-grams by key.
class GramTable {
public:
    void clear(std::size_t grams, Id first) {
        slots_.clear(grams);
        first_ = next_ = first;
    }
    // Gives a new n-gram the next id; there must be room for it.
    Gram& intern(std::uint64_t key);
    Gram find(std::uint64_t key) const { return slots_[slots_.find(key, hash_number(key))].gram; }
    [[gnu::always_inline]] void prefetch(std::uint64_t key) const { slots_.prefetch(slots_.home(hash_number(key))); }
    Id end() const { return next_; }
    template <class Visit>
    void each(Visit visit) {
        for (Slot& slot : slots_)
            if (slot.key != kEmptyKey) visit(slot.key, slot.gram);
    }
    template <class Visit>
    void each(Visit visit) const {
        for (const Slot& slot : slots_)
            if (slot.key != kEmptyKey) visit(slot.key, slot.gram);
    }

private:
    struct Slot {
        std::uint64_t key = kEmptyKey;
        Gram gram;
    };
    GramSlots<Slot> slots_;
    Id first_ = 0, next_ = 0;
};

inline Gram& GramTable::intern(std::uint64_t key) {
    Slot& slot = slots_[slots_.find(key, hash_number(key))];
    if (slot.key == kEmptyKey) {
        if (next_ >= kLocal - 1) throw std::length_error("more than two thousand million distinct n-grams");
        slot = {key, {next_++, 0}};
    }
    return slot.gram;
}

}  // namespace caplens
