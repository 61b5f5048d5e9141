// Python strings to token ids: every distinct text is tokenized once.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <span>
#include <unordered_map>

#include "huge_pages.h"
#include "interrupt.h"
#include "vocabulary.h"

namespace caplens {

namespace nb = nanobind;

// Runs `work(row)` for every row without the GIL, and lets Ctrl-C in between.
template <class Work>
void for_each_row(std::size_t rows, Interrupt& interrupt, Work work) {
    nb::gil_scoped_release released;
    for (std::size_t row = 0; row < rows; ++row) {
        work(row);
        interrupt.after(100);
    }
}

// Distinct Python strings in order of first appearance; all of it needs the GIL.
class TextSet {
public:
    Id add(nb::handle text);
    std::size_t size() const { return owned_.size(); }
    std::string_view view(Id text) const;
    nb::handle object(Id text) const { return owned_[text]; }
    // No text will be added any more.
    void close() { table_ = {}; }

private:
    std::vector<nb::object> owned_;  // well-formed, so that each has a utf-8 form
    PositionTable table_;
};

// How a text becomes tokens: "ptb", "whitespace", or a Python callable that returns a list of strings.
class Tokenizer {
public:
    explicit Tokenizer(nb::object choice);

    struct Choice {
        enum Kind { ptb, spaces, callable } kind;
        nb::object call;
    };
    const Choice& choice() const { return choice_; }

private:
    Choice choice_;
};

// Token ids of texts. BLEU and CIDEr see *words*: tokens broken at any Unicode whitespace, as str.split() does.
// ROUGE sees *pieces*: tokens as they stand, and one empty token for an empty text, as split(" ") does.
class Tokens {
public:
    void tokenize(const TextSet& texts, const Tokenizer& tokenizer, Vocabulary& vocabulary, Interrupt& interrupt);

    std::size_t size() const { return ends_.size(); }
    std::size_t total() const { return ids_.size(); }
    // Where the words of a text begin among those of all texts.
    std::size_t start(Id text) const { return text == 0 ? 0 : ends_[text - 1]; }
    std::span<const Id> words(Id text) const { return {ids_.data() + start(text), ends_[text] - start(text)}; }
    std::span<const Id> pieces(Id text) const {
        const auto found = pieces_.find(text);
        return found == pieces_.end() ? words(text) : std::span<const Id>(found->second);
    }
    // Before words() of a text that may lie anywhere in memory.
    [[gnu::always_inline]] void prefetch(Id text) const { __builtin_prefetch(&ends_[text]); }
    // One more text, which is already words.
    void append(std::span<const Id> words, Vocabulary& vocabulary);

private:
    void add(std::span<const std::string_view> tokens, Vocabulary& vocabulary);
    void make_room(std::size_t done, std::size_t texts);

    LargeVector<Id> ids_;
    LargeVector<std::size_t> ends_;
    std::unordered_map<Id, std::vector<Id>> pieces_;  // only texts where words and pieces differ
};

// Unicode code points of well-formed utf-8, as `visit(code point, start, end)`.
template <class Visit>
void each_code_point(std::string_view text, Visit visit) {
    for (std::size_t start = 0, end; start < text.size(); start = end) {
        const unsigned char lead = static_cast<unsigned char>(text[start]);
        const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        end = std::min(start + length, text.size());
        std::uint32_t code = length == 1 ? lead : lead & (0xFFu >> (length + 1));
        for (std::size_t at = start + 1; at < end; ++at) code = code << 6 | (static_cast<unsigned char>(text[at]) & 0x3F);
        visit(code, start, end);
    }
}

// The longest stretches of code points for which `inside` holds.
template <class Inside, class Visit>
void each_run(std::string_view text, Inside inside, Visit visit) {
    std::size_t begin = 0;
    bool open = false;
    each_code_point(text, [&](std::uint32_t code, std::size_t start, std::size_t) {
        if (inside(code) == open) return;
        if (open) visit(text.substr(begin, start - begin));
        begin = start;
        open = !open;
    });
    if (open) visit(text.substr(begin));
}

}  // namespace caplens
