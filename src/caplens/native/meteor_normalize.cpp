// METEOR's English normalizer. Its rules look one character to either side and go left to right without
// overlapping, so that in "a-b-c" only the first dash is undone: each rule below keeps that.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "meteor_text.h"

namespace caplens::meteor {

namespace {

using Class = bool (*)(char32_t);

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }

bool is_letter(char32_t c) {
    static constexpr std::array<std::pair<char32_t, char32_t>, 9> ranges{{{U'A', U'Z'},
                                                                          {U'a', U'z'},
                                                                          {0xC0, 0xD6},
                                                                          {0xD8, 0xF6},
                                                                          {0xF8, 0x17E},
                                                                          {0x400, 0x527},
                                                                          {0x1D00, 0x1D7F},
                                                                          {0xA640, 0xA66E},
                                                                          {0xA67E, 0xA697}}};
    return std::any_of(ranges.begin(), ranges.end(),
                       [c](const auto &range) { return c >= range.first && c <= range.second; });
}

bool is_alnum(char32_t c) { return is_letter(c) || is_digit(c); }
bool not_digit(char32_t c) { return !is_digit(c); }
bool not_letter(char32_t c) { return !is_letter(c); }
bool not_alnum(char32_t c) { return !is_alnum(c); }
bool is_alnum_or_dot(char32_t c) { return c == U'.' || is_alnum(c); }
bool is_s(char32_t c) { return c == U's'; }

// Java's StringTokenizer
bool is_separator(char32_t c) { return c == U' ' || c == U'\t' || c == U'\n' || c == U'\r' || c == U'\f'; }

// Spaces other than ASCII's; they stand alone after the first rule and vanish at the end.
bool is_wide_space(char32_t c) {
    return c == 0xA0 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool stays_in_word(char32_t c) {
    static constexpr std::u32string_view kept = U" \t\n\v\f\r.'`,-\u2018\u2019";
    return is_alnum(c) || kept.find(c) != std::u32string_view::npos;
}

// Replace `middle`, wherever it has such neighbors, by `by`; the right neighbor of one place is not the left of the next.
std::u32string between(const std::u32string &text, Class left, char32_t middle, Class right, std::u32string_view by) {
    if (text.find(middle) == std::u32string::npos) return text;
    std::u32string out;
    out.reserve(text.size() + 8);
    std::size_t i = 0;
    while (i < text.size()) {
        out += text[i];
        if (i + 2 < text.size() && text[i + 1] == middle && left(text[i]) && right(text[i + 2])) {
            out += by;
            out += text[i + 2];
            i += 3;
        } else {
            ++i;
        }
    }
    return out;
}

std::u32string isolate_symbols(std::u32string_view line) {
    std::u32string out = U" ";
    for (char32_t c : line) {
        if (stays_in_word(c)) {
            out += c;
        } else {
            out += {U' ', c, U' '};
        }
    }
    out += U' ';
    return out;
}

// Two dots or more become a word of their own.
std::u32string isolate_ellipses(const std::u32string &text) {
    if (text.find(U"..") == std::u32string::npos) return text;
    std::u32string out;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i;
        while (end < text.size() && text[end] == U'.') ++end;
        if (end - i >= 2) {
            out += U' ';
            out.append(text, i, end - i);
            out += U' ';
            i = end;
        } else {
            out += text[i++];
        }
    }
    return out;
}

std::u32string unify_quotes_and_dashes(const std::u32string &text) {
    std::u32string single = text;
    for (char32_t &c : single) {
        if (c == U'`' || c == 0x2018 || c == 0x2019) c = U'\'';
        if (c == 0x2013) c = U'-';
    }
    std::u32string out;
    for (std::size_t i = 0; i < single.size(); ++i) {
        bool pair = i + 1 < single.size() && single[i] == single[i + 1];
        if (single[i] == 0x201C || single[i] == 0x201D) {
            out += U" \" ";
        } else if (pair && single[i] == U'\'') {
            out += U" \" ";
            ++i;
        } else if (pair && single[i] == U'-') {
            out += U'-';
            ++i;
        } else {
            out += single[i];
        }
    }
    return out;
}

enum class Prefix { none, always, before_number };

// Abbreviations after which a dot does not end a sentence.
Prefix prefix_of(std::u32string_view word) {
    static const std::unordered_map<std::u32string_view, Prefix> known = [] {
        std::unordered_map<std::u32string_view, Prefix> map;
        static constexpr std::u32string_view letters = U"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        for (std::size_t i = 0; i < letters.size(); ++i) map[letters.substr(i, 1)] = Prefix::always;
        for (std::u32string_view word : {
                 U"Adj", U"Adm", U"Adv", U"Asst", U"Bart", U"Bldg", U"Brig", U"Bros", U"Capt", U"Cmdr", U"Col",  U"Comdr",
                 U"Con", U"Corp", U"Cpl", U"DR", U"Dr", U"Drs", U"Ens", U"Gen", U"Gov", U"Hon", U"Hr", U"Hosp", U"Insp",
                 U"Lt", U"MM", U"MR", U"MRS", U"MS", U"Maj", U"Messrs", U"Mlle", U"Mme", U"Mr", U"Mrs", U"Ms", U"Msgr",
                 U"Op", U"Ord", U"Pfc", U"Ph", U"Prof", U"Pvt", U"Rep", U"Reps", U"Res", U"Rev", U"Rt", U"Sen", U"Sens",
                 U"Sfc", U"Sgt", U"Sr", U"St", U"Supt", U"Surg", U"v", U"vs", U"i.e", U"rev", U"e.g", U"Nos", U"Nr"})
            map[word] = Prefix::always;
        for (std::u32string_view word : {U"No", U"Art", U"pp"}) map[word] = Prefix::before_number;
        return map;
    }();
    auto found = known.find(word);
    return found == known.end() ? Prefix::none : found->second;
}

// What becomes of a word that ends in a dot.
std::u32string settle_final_dot(const std::u32string &word, const std::u32string *next) {
    if (word.size() < 2 || word.back() != U'.') return word;
    std::u32string_view before(word.data(), word.size() - 1);
    if (std::all_of(before.begin(), before.end(), [](char32_t c) { return c == U'.'; })) return word;  // an ellipsis
    if (before.find(U'.') != std::u32string_view::npos && std::any_of(before.begin(), before.end(), is_letter)) {
        std::u32string out;  // u.s. → us
        std::copy_if(word.begin(), word.end(), std::back_inserter(out), [](char32_t c) { return c != U'.'; });
        return out;
    }
    Prefix prefix = prefix_of(before);
    char32_t follows = next ? next->front() : U'\0';
    if (prefix == Prefix::always || (follows >= U'a' && follows <= U'z')) return word;
    if (prefix == Prefix::before_number && is_digit(follows)) return word;
    return std::u32string(before) + U" .";
}

std::vector<std::u32string> words_of(const std::u32string &text) {
    std::vector<std::u32string> words;
    for (std::size_t i = 0; i < text.size();) {
        while (i < text.size() && is_separator(text[i])) ++i;
        std::size_t start = i;
        while (i < text.size() && !is_separator(text[i])) ++i;
        if (i > start) words.emplace_back(text, start, i - start);
    }
    return words;
}

}  // namespace

bool is_plain(std::string_view ascii) {
    return std::all_of(ascii.begin(), ascii.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || c == ' ' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
    });
}

std::u32string normalize(std::u32string_view line, Interrupt &interrupt) {
    std::u32string text = isolate_symbols(line);
    const auto apply = [&](std::u32string changed) {
        text = std::move(changed);
        interrupt.after(5 * text.size());
    };
    apply(isolate_ellipses(text));
    apply(between(text, not_digit, U',', not_digit, U" , "));
    apply(between(text, is_digit, U',', not_digit, U" , "));
    apply(between(text, not_digit, U',', is_digit, U" , "));
    apply(unify_quotes_and_dashes(text));
    apply(between(text, is_alnum_or_dot, U'-', is_alnum, U" "));
    apply(between(text, not_letter, U'\'', not_letter, U" ' "));
    apply(between(text, not_alnum, U'\'', is_letter, U" ' "));
    apply(between(text, is_letter, U'\'', not_letter, U" ' "));
    apply(between(text, is_letter, U'\'', is_letter, U" '"));
    apply(between(text, is_digit, U'\'', is_s, U" '"));

    std::vector<std::u32string> words = words_of(text);
    std::u32string out;
    for (std::size_t i = 0; i < words.size(); ++i) {
        interrupt.after(100);
        if (!out.empty()) out += U' ';
        out += settle_final_dot(words[i], i + 1 < words.size() ? &words[i + 1] : nullptr);
    }
    std::replace_if(out.begin(), out.end(), is_wide_space, U' ');
    auto is_ink = [](char32_t c) { return c > U' '; };  // Java's trim
    auto first = std::find_if(out.begin(), out.end(), is_ink);
    auto last = std::find_if(out.rbegin(), std::make_reverse_iterator(first), is_ink).base();
    return {first, last};
}

std::vector<std::string_view> split_words(std::string_view line) {
    std::vector<std::string_view> words;
    for (std::size_t i = 0; i < line.size();) {
        while (i < line.size() && is_separator(static_cast<unsigned char>(line[i]))) ++i;
        std::size_t start = i;
        while (i < line.size() && !is_separator(static_cast<unsigned char>(line[i]))) ++i;
        if (i > start) words.push_back(line.substr(start, i - start));
    }
    return words;
}

std::u32string from_utf8(std::string_view text) {
    std::u32string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        auto lead = static_cast<unsigned char>(text[i]);
        int extra = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
        char32_t c = extra == 0 ? lead : lead & (0x3F >> extra);
        for (++i; extra > 0 && i < text.size(); --extra, ++i) c = (c << 6) | (static_cast<unsigned char>(text[i]) & 0x3F);
        out += c;
    }
    return out;
}

std::string to_utf8(std::u32string_view text) {
    std::string out;
    out.reserve(text.size());
    for (char32_t c : text) {
        if (c < 0x80) {
            out += static_cast<char>(c);
            continue;
        }
        int extra = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        static constexpr unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
        out += static_cast<char>(lead[extra] | (c >> (6 * extra)));
        while (extra-- > 0) out += static_cast<char>(0x80 | ((c >> (6 * extra)) & 0x3F));
    }
    return out;
}

std::u16string to_utf16(std::u32string_view text) {
    std::u16string out;
    for (char32_t c : text) {
        if (c < 0x10000) {
            out += static_cast<char16_t>(c);
        } else {
            out += static_cast<char16_t>(0xD800 + ((c - 0x10000) >> 10));
            out += static_cast<char16_t>(0xDC00 + ((c - 0x10000) & 0x3FF));
        }
    }
    return out;
}

std::u32string from_utf16(std::u16string_view text) {
    std::u32string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] >= 0xD800 && text[i] < 0xDC00 && i + 1 < text.size()) {
            out += 0x10000 + ((text[i] & 0x3FF) << 10) + (text[i + 1] & 0x3FF);
            ++i;
        } else {
            out += text[i];
        }
    }
    return out;
}

std::int32_t java_hash(std::u16string_view word) {
    std::uint32_t hash = 0;
    for (char16_t unit : word) hash = hash * 31 + unit;
    return static_cast<std::int32_t>(hash);
}

}  // namespace caplens::meteor
