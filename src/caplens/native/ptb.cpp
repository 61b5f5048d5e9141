#include "ptb.h"

namespace caplens {

void PtbTokeniser::tokenise(std::string_view utf8, std::vector<std::string_view>& tokens) {
    tokens.clear();
    text_.assign(utf8);
    for (char& c : text_)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    std::string_view text = text_;
    const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || (c & 0x80); };
    for (size_t i = 0; i < text.size();) {
        size_t start = i;
        while (i < text.size() && is_word(text[i])) ++i;
        if (i > start && text.substr(start, i - start) != "-") tokens.push_back(text.substr(start, i - start));
        if (i == start) ++i;
    }
}

}  // namespace caplens
