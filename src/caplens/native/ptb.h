// The tokeniser of coco-caption: Penn Treebank tokens, lower-cased, punctuation dropped. See docs/tokeniser.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caplens {

// Keep one per thread: the buffers are reused from caption to caption.
class PtbTokeniser {
public:
    // The kept tokens of ONE caption; views are valid until the next call. Any bytes are accepted.
    void tokenise(std::string_view utf8, std::vector<std::string_view>& tokens);

private:
    std::string text_;
};

}  // namespace caplens
