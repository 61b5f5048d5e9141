// How the mapped indexes are laid out: a header, then sections of (count, elements, padding to 8 bytes). The machine's own
// byte order: an index is built where it is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace caplens::meteor {

inline constexpr std::string_view synonym_kind = "clsyn-01";
inline constexpr std::string_view paraphrase_kind = "clpar-01";

struct Header {
    std::array<char, 8> kind;
    std::uint64_t size;
    std::array<char, 64> source;  // sha256 of what the index was built from
};

inline std::size_t padded(std::size_t size) { return (size + 7) / 8 * 8; }

inline std::uint64_t slot_hash(std::string_view key) {  // FNV-1a, folded
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (unsigned char c : key) hash = (hash ^ c) * 0x100000001b3ULL;
    return hash ^ (hash >> 32);
}

}  // namespace caplens::meteor
