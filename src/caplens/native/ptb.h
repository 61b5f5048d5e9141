// The tokenizer of coco-caption: Penn Treebank tokens, lower-cased, punctuation dropped. See docs/research/tokenizer.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interrupt.h"

namespace caplens {

// Keep one per thread: the buffers are reused from caption to caption.
class PtbTokenizer {
public:
    explicit PtbTokenizer(Interrupt& interrupt) : interrupt_(interrupt) {}

    // The kept tokens of ONE caption; views are valid until the next call. Any bytes are accepted.
    // `rest` is what follows the caption in its file, from the line break on, for those who want it looked at.
    void tokenize(std::string_view utf8, std::vector<std::string_view>& tokens,
                  std::optional<std::string_view> rest = std::nullopt);

private:
    void read_ascii(std::string_view text);
    void read_utf8(std::string_view text);
    void append_next_line(std::string_view caption, std::optional<std::string_view> rest);

    Interrupt& interrupt_;
    std::vector<uint8_t> classes_;   // of each UTF-16 unit
    std::vector<size_t> offsets_;    // where each unit starts in the bytes, unless they are ascii
    std::string lowered_, written_;  // what the views show
};

}  // namespace caplens
