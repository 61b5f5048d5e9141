// METEOR's view of a line of text: its English normalizer and the Snowball English stemmer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "interrupt.h"

namespace caplens::meteor {

std::u32string from_utf8(std::string_view text);
std::string to_utf8(std::u32string_view text);
std::u16string to_utf16(std::u32string_view text);
std::u32string from_utf16(std::u16string_view text);

// Letters, digits and spaces only: the normalizer would change nothing but the number of spaces.
bool is_plain(std::string_view ascii);

// What METEOR does to a line before it splits it into words (English, punctuation kept); case is left alone.
std::u32string normalize(std::u32string_view line, Interrupt &interrupt);

// Snowball's English (Porter2) stemmer as it was when METEOR 1.5 took it in. `word` is lower-case.
std::u16string stem(std::u16string word);

// Java's String.hashCode: METEOR compares words by it, so two words that collide are equal to METEOR.
std::int32_t java_hash(std::u16string_view word);

// The words of a normalized line: runs between spaces, tabs, line ends and form feeds.
std::vector<std::string_view> split_words(std::string_view line);

}  // namespace caplens::meteor
