// Hashes that nobody can craft collisions for: they are keyed by numbers that each process draws for itself. Nothing that is
// returned may depend on them: where a hash table is walked through, the order is settled by other means.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace caplens {

struct HashKeys {
    std::uint64_t first, second, third;
};
extern const HashKeys hash_keys;

// Both halves of the product of two numbers, so that every bit of either may change every bit of the result.
inline std::uint64_t fold(std::uint64_t one, std::uint64_t other) {
    const auto product = static_cast<unsigned __int128>(one) * other;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t hash_number(std::uint64_t number) { return fold(number ^ hash_keys.first, hash_keys.second); }

inline std::uint64_t hash_bytes(std::string_view bytes) {
    const auto read = [](const char* from, std::size_t size) {
        std::uint64_t word = 0;
        std::memcpy(&word, from, size);
        return word;
    };
    const char* at = bytes.data();
    std::size_t left = bytes.size();
    std::uint64_t hash = hash_keys.third ^ left;
    for (; left > 16; left -= 16, at += 16) hash = fold(read(at, 8) ^ hash_keys.first, read(at + 8, 8) ^ hash);
    // What is left, as two numbers that may overlap.
    std::uint64_t head = 0, tail = 0;
    if (left >= 8) {
        head = read(at, 8), tail = read(at + left - 8, 8);
    } else if (left >= 4) {
        head = read(at, 4), tail = read(at + left - 4, 4);
    } else if (left > 0) {
        head = read(at, 1) << 16 | read(at + left / 2, 1) << 8 | read(at + left - 1, 1);
    }
    return fold(hash_keys.second ^ bytes.size(), fold(head ^ hash_keys.first, tail ^ hash));
}

// For the standard library's hash tables.
struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return hash_bytes(text); }
    std::size_t operator()(std::u16string_view text) const {
        return hash_bytes({reinterpret_cast<const char*>(text.data()), text.size() * sizeof(char16_t)});
    }
};

struct NumberHash {
    std::size_t operator()(std::uint64_t number) const { return hash_number(number); }
};

}  // namespace caplens
