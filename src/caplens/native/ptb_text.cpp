#include "ptb_text.h"

#include <algorithm>
#include <iterator>

namespace caplens::ptb {
namespace {

struct CaseRun {
    char32_t first, last;
    uint8_t step;
    int32_t shift;
};

#include "ptb_characters.inc"

constexpr char32_t kSoftHyphen = 0xAD, kDottedI = 0x130, kSigma = 0x3A3, kFinalSigma = 0x3C2, kReplacement = 0xFFFD;

// The last code point of some bytes.
Decoded decode_last(std::string_view bytes) {
    size_t start = bytes.size() - 1;
    while (start > 0 && bytes.size() - start < 4 && (bytes[start] & 0xC0) == 0x80) --start;
    const Decoded last = decode(bytes.substr(start));
    return start + last.size == bytes.size() ? last : Decoded{kReplacement, 1};
}

void encode(char32_t point, std::string& out) {
    const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (point >> shift & 0x3F)); };
    if (point < 0x80) {
        out += static_cast<char>(point);
    } else if (point < 0x800) {
        out += static_cast<char>(0xC0 | point >> 6);
        tail(0);
    } else if (point < 0x10000) {
        out += static_cast<char>(0xE0 | point >> 12);
        tail(6), tail(0);
    } else {
        out += static_cast<char>(0xF0 | point >> 18);
        tail(12), tail(6), tail(0);
    }
}

char32_t lower(char32_t point) {
    if (point < 0x80) return point >= 'A' && point <= 'Z' ? point + 32 : point;
    const CaseRun* run = std::upper_bound(std::begin(kLower), std::end(kLower), point,
                                          [](char32_t p, const CaseRun& r) { return p < r.first; });
    if (run == std::begin(kLower)) return point;
    --run;
    return point <= run->last && (point - run->first) % run->step == 0 ? point + run->shift : point;
}

// Sorted bounds of ranges: a point is inside after an odd number of them.
template <size_t N>
bool within(const char32_t (&bounds)[N], char32_t point) {
    return (std::upper_bound(std::begin(bounds), std::end(bounds), point) - std::begin(bounds)) % 2 == 1;
}

bool joins_words(char32_t point) {
    return point == '\'' || point == '-' || point == '.' || point == '_' || point == kSoftHyphen ||
           (point >= 0x2010 && point <= 0x2015);
}

// Whether a cased letter stands in the same word, read away from a sigma. A mark joins two letters, not digits.
template <typename Next>
bool cased_in_word(std::string_view rest, Next next) {
    for (bool letter = true, joined = false; !rest.empty();) {
        const char32_t point = next(rest);
        if (within(kCased, point)) return true;
        if (within(kInWord, point)) {
            letter = point < '0' || point > '9';
            if (joined && !letter) return false;
            joined = false;
        } else {
            if (!letter || joined || !joins_words(point)) return false;
            joined = true;
        }
    }
    return false;
}

// Java's rule for a capital sigma: final after a cased letter of its word, unless one follows.
bool sigma_is_final(std::string_view before, std::string_view after) {
    const auto backward = [](std::string_view& rest) {
        const auto [point, size] = decode_last(rest);
        rest.remove_suffix(size);
        return point;
    };
    const auto forward = [](std::string_view& rest) {
        const auto [point, size] = decode(rest);
        rest.remove_prefix(size);
        return point;
    };
    return cased_in_word(before, backward) && !cased_in_word(after, forward);
}

bool is_blank(char32_t point) {
    return point == ' ' || (point >= 9 && point <= 13) || (point >= 0x1C && point <= 0x1F) || point == 0x85 ||
           point == 0xA0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) || point == 0x2028 ||
           point == 0x2029 || point == 0x202F || point == 0x205F || point == 0x3000;
}

// What a code point is replaced by, or null.
const char* replacement(Action action, char32_t point) {
    if (action == Action::spaced || action == Action::bracketed) {
        if (point == ' ') return "\u00A0";
        if (action == Action::spaced) return nullptr;
        return point == '(' ? "-lrb-" : point == ')' ? "-rrb-" : nullptr;
    }
    if (action == Action::word) return point == kSoftHyphen ? "" : nullptr;
    if (action != Action::clitic && action != Action::quotes) return nullptr;
    switch (point) {
        case 0x91: case 0x2018: case 0x201B: case 0x2039: return "`";
        case 0x92: case 0x2019: case 0x203A: return "'";
        case 0x93: case 0x201C: case 0xAB: return "``";
        case 0x94: case 0x201D: case 0xBB: return "''";
        default: return nullptr;
    }
}

bool is_ampersand(std::string_view entity) {
    return entity[0] == '&' && (entity[1] | 32) == 'a' && (entity[2] | 32) == 'm' && (entity[3] | 32) == 'p' && entity[4] == ';';
}

}  // namespace

Decoded decode(std::string_view bytes) {
    const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const unsigned char lead = at(0);
    if (lead < 0x80) return {lead, 1};
    const int size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || bytes.size() < static_cast<size_t>(size)) return {kReplacement, 1};
    char32_t point = lead & (0xFF >> (size + 1));
    for (int i = 1; i < size; ++i) {
        if ((at(i) & 0xC0) != 0x80) return {kReplacement, 1};
        point = point << 6 | (at(i) & 0x3F);
    }
    constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < least[size] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return {kReplacement, 1};
    return {point, size};
}

void write(Action action, std::string_view text, std::string& out) {
    for (std::string_view rest = text; !rest.empty();) {
        if (action == Action::clitic && rest.starts_with("&apos;")) {
            out += '\'';
            rest.remove_prefix(6);
            continue;
        }
        if (action == Action::ampersand && rest.size() > 4 && is_ampersand(rest)) {
            out += '&';
            rest.remove_prefix(5);
            continue;
        }
        const std::string_view before = text.substr(0, text.size() - rest.size());
        const auto [point, size] = decode(rest);
        rest.remove_prefix(size);
        if (const char* other = replacement(action, point)) out += other;
        else if (point == kDottedI) out += "i\u0307";
        else if (point == kSigma && sigma_is_final(before, rest)) encode(kFinalSigma, out);
        else encode(lower(point), out);
    }
}

std::string_view strip_end(std::string_view text) {
    while (!text.empty() && is_blank(decode_last(text).point)) text.remove_suffix(decode_last(text).size);
    return text;
}

}  // namespace caplens::ptb
