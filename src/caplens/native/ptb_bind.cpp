// Python's door to the tokenizer.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "held_texts.h"
#include "ptb.h"

namespace nb = nanobind;

namespace caplens {

static void join(const std::vector<std::string_view>& tokens, std::string& joined) {
    for (size_t i = 0; i < tokens.size(); ++i) {
        if (i > 0) joined += ' ';
        joined += tokens[i];
    }
}

// One string per caption, tokens joined by one space. Works in chunks: the GIL is held only to read and make strings.
static nb::list ptb_tokenize(nb::list captions) {
    constexpr size_t chunk = 2048;
    Interrupt interrupt;
    PtbTokenizer tokenizer(interrupt);
    HeldTexts held;
    std::vector<std::string_view> texts, tokens;
    std::vector<size_t> ends;
    std::string joined;
    nb::list results;
    for (size_t begin = 0; begin < captions.size(); begin += chunk) {
        texts.clear();
        held.clear();
        for (size_t i = begin; i < std::min(begin + chunk, captions.size()); ++i)
            texts.push_back(held.add(item_of(captions, i)));
        joined.clear();
        ends.clear();
        {
            nb::gil_scoped_release released;
            for (const std::string_view text : texts) {
                tokenizer.tokenize(text, tokens);
                join(tokens, joined);
                ends.push_back(joined.size());
            }
        }
        size_t start = 0;
        for (const size_t end : ends) {
            results.append(nb::str(joined.data() + start, end - start));
            start = end;
        }
    }
    return results;
}

// One string per line of a file, each line read with the one after it in sight, as the jar reads them.
static std::vector<std::string> ptb_tokenize_lines(std::string_view file) {
    nb::gil_scoped_release released;
    Interrupt interrupt;
    PtbTokenizer tokenizer(interrupt);
    std::vector<std::string_view> tokens;
    std::vector<std::string> results;
    for (size_t begin = 0; begin <= file.size();) {
        const size_t end = std::min(file.find('\n', begin), file.size());
        tokenizer.tokenize(file.substr(begin, end - begin), tokens, file.substr(end));
        join(tokens, results.emplace_back());
        begin = end + 1;
    }
    return results;
}

void bind_ptb(nb::module_& m) {
    m.def("ptb_tokenize", &ptb_tokenize, nb::arg("captions"));
    m.def("ptb_tokenize_lines", &ptb_tokenize_lines, nb::arg("file"));
}

}  // namespace caplens
