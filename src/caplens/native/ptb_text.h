// How a matched text is written: Java's lower case and the replacements of the Penn Treebank.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace caplens::ptb {

// What becomes of a matched text, besides being lower-cased.
enum class Action : uint8_t {
    skip,        // blanks and characters without a rule: no token at all
    line_break,  // the same, and a line ends
    drop,        // punctuation that coco-caption removes
    keep,        // as it stands
    word,        // without soft hyphens
    spaced,      // blanks become U+00A0
    bracketed,   // the same, and round brackets become -lrb- and -rrb-
    clitic,      // apostrophes become ' or `
    ampersand,   // &amp; becomes &
    quotes,      // quotation marks become those of the Penn Treebank
    constant,    // replaced by the rule's text
};

struct Decoded {
    char32_t point;
    int size;  // in bytes
};

// The code point at the head of some bytes; a broken one counts as one byte of U+FFFD.
Decoded decode(std::string_view bytes);

// Appends a token's text as its action wants it; at most six bytes for one.
void write(Action action, std::string_view text, std::string& out);

// The text without blanks at its end, as Python's str.rstrip understands them.
std::string_view strip_end(std::string_view text);

}  // namespace caplens::ptb
