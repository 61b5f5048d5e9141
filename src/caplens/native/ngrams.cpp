#include "ngrams.h"

#include <algorithm>

namespace caplens {

void GramTable::start_at(Id first, std::size_t expected) {
    next_ = first_ = first;
    std::size_t capacity = 1024;
    while (capacity < expected) capacity *= 2;
    grow(capacity);
}

Id GramTable::intern(std::uint64_t key) {
    if (std::size_t{next_ - first_} * 5 >= slots_.size() * 3) grow(2 * slots_.size());
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = home(key);
    while (slots_[at].key != key) {
        if (slots_[at].key == kEmpty) {
            if (next_ >= kLocal - 1) throw std::length_error("more than two thousand million distinct n-grams");
            slots_[at] = {key, next_++};
            break;
        }
        at = (at + 1) & mask;
    }
    return slots_[at].id;
}

Id GramTable::find(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = home(key);; at = (at + 1) & mask) {
        if (slots_[at].key == key) return slots_[at].id;
        if (slots_[at].key == kEmpty) return kNone;
    }
}

void GramTable::grow(std::size_t capacity) {
    const LargeVector<Slot> old = std::move(slots_);
    slots_.assign(capacity, Slot{kEmpty, 0});
    const std::size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
        if (slot.key == kEmpty) continue;
        std::size_t at = home(slot.key);
        while (slots_[at].key != kEmpty) at = (at + 1) & mask;
        slots_[at] = slot;
    }
}

std::vector<std::uint64_t> GramTable::keys() const {
    std::vector<std::uint64_t> keys(next_ - first_);
    for (const Slot& slot : slots_)
        if (slot.key != kEmpty) keys[slot.id - first_] = slot.key;
    return keys;
}

std::array<std::size_t, kLongest + 1> level_starts(std::size_t words) {
    std::array<std::size_t, kLongest + 1> starts{};
    for (std::size_t n = 1; n <= kLongest; ++n) starts[n] = starts[n - 1] + (words >= n ? words - n + 1 : 0);
    return starts;
}

void group_equal(std::span<Id> ids, std::vector<std::uint64_t>& scratch) {
    const std::size_t count = ids.size();
    if (count <= 48) {  // captions: comparing all pairs is faster than sorting
        for (std::size_t done = 1; done < count; ++done) {
            for (std::size_t at = done; at < count; ++at) {
                if (ids[at] != ids[done - 1]) continue;
                std::rotate(ids.begin() + static_cast<std::ptrdiff_t>(done), ids.begin() + static_cast<std::ptrdiff_t>(at),
                            ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
                ++done;
            }
        }
        return;
    }
    // Sort by (id, position), name each run by its first position, sort by (that, id).
    scratch.resize(count);
    for (std::size_t at = 0; at < count; ++at) scratch[at] = std::uint64_t{ids[at]} << 32 | at;
    std::sort(scratch.begin(), scratch.end());
    for (std::size_t at = 0; at < count;) {
        const std::uint64_t id = scratch[at] >> 32, first = scratch[at] & 0xFFFFFFFFu;
        for (; at < count && scratch[at] >> 32 == id; ++at) scratch[at] = first << 32 | id;
    }
    // The run's id moved to the low half: the loop above compares high halves before they are overwritten.
    std::sort(scratch.begin(), scratch.end());
    for (std::size_t at = 0; at < count; ++at) ids[at] = static_cast<Id>(scratch[at]);
}

}  // namespace caplens
