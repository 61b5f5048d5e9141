// Words as numbers: every distinct word gets the next id, and nothing here is a Python object.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "hashing.h"

namespace caplens {

using Id = std::uint32_t;

// Ids with this bit are known only to one batch of candidates: no reference holds the word or n-gram.
constexpr Id kLocal = Id{1} << 31;
constexpr Id kNone = ~Id{0};

// A hash set of the positions of byte strings that live elsewhere; `same(position)` compares with what is sought.
class PositionTable {
public:
    template <class Same>
    Id find(std::uint64_t hash, Same same) const {
        if (slots_.empty()) return kNone;
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t at = home(tag(hash));; at = (at + 1) & mask) {
            const Slot slot = slots_[at];
            if (slot.position == kNone) return kNone;
            if (slot.tag == tag(hash) && same(slot.position)) return slot.position;
        }
    }

    // Call only when find() gave kNone.
    void insert(std::uint64_t hash, Id position) {
        if (10 * (used_ + 1) > 7 * slots_.size()) grow();
        put({tag(hash), position});
        ++used_;
    }

private:
    struct Slot {
        std::uint32_t tag;
        Id position;
    };

    // The half of the hash that is kept: it says where a position belongs, however large the table grows.
    static std::uint32_t tag(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
    std::size_t home(std::uint32_t tag) const { return tag >> shift_; }

    void put(Slot slot) {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = home(slot.tag);
        while (slots_[at].position != kNone) at = (at + 1) & mask;
        slots_[at] = slot;
    }

    void grow() {
        if (shift_ == 0) throw std::length_error("a table of more than three thousand million texts");
        const std::vector<Slot> old = std::move(slots_);
        --shift_;
        slots_.assign(std::size_t{1} << (32 - shift_), Slot{0, kNone});
        for (const Slot& slot : old)
            if (slot.position != kNone) put(slot);
    }

    std::vector<Slot> slots_;
    std::size_t used_ = 0;
    int shift_ = 27;  // one more than that of the smallest table, which has 64 slots
};

class Vocabulary {
public:
    // With a base, words of the base keep their ids and new words get ids with the kLocal bit; the base must outlive this.
    explicit Vocabulary(const Vocabulary* base = nullptr) : base_(base) {}

    Id find(std::string_view word) const { return find(word, hash_bytes(word)); }

    Id intern(std::string_view word) {
        const std::uint64_t hash = hash_bytes(word);
        const Id known = find(word, hash);
        if (known != kNone) return known;
        const Id id = static_cast<Id>(ends_.size());
        if (id >= kLocal - 1) throw std::length_error("more than two thousand million distinct words");
        bytes_.append(word);
        ends_.push_back(bytes_.size());
        table_.insert(hash, id);
        return base_ == nullptr ? id : id | kLocal;
    }

    std::string_view word(Id id) const {
        if (base_ != nullptr) {
            if ((id & kLocal) == 0) return base_->word(id);
            id &= ~kLocal;
        }
        return own_word(id);
    }

    // Words of its own, the base not counted.
    Id size() const { return static_cast<Id>(ends_.size()); }

private:
    Id find(std::string_view word, std::uint64_t hash) const {
        if (base_ != nullptr) {
            const Id known = base_->find(word, hash);
            if (known != kNone) return known;
        }
        const Id id = table_.find(hash, [&](Id own) { return own_word(own) == word; });
        return id == kNone || base_ == nullptr ? id : id | kLocal;
    }

    std::string_view own_word(Id id) const {
        const std::size_t start = id == 0 ? 0 : ends_[id - 1];
        return {bytes_.data() + start, ends_[id] - start};
    }

    const Vocabulary* base_;
    std::string bytes_;
    std::vector<std::size_t> ends_;
    PositionTable table_;
};

}  // namespace caplens
