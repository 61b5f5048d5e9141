// Python's door to the tokeniser.
#include <nanobind/nanobind.h>

#include "ptb.h"

namespace nb = nanobind;

namespace caplens {

// One string per caption, tokens joined by one space.
static nb::list ptb_tokenise(nb::list captions) {
    PtbTokeniser tokeniser;
    std::vector<std::string_view> tokens;
    std::string joined;
    nb::list results;
    for (nb::handle caption : captions) {
        Py_ssize_t size = 0;
        const char* data = PyUnicode_AsUTF8AndSize(caption.ptr(), &size);
        if (data == nullptr) throw nb::python_error();
        tokeniser.tokenise({data, static_cast<size_t>(size)}, tokens);
        joined.clear();
        for (std::string_view token : tokens) {
            if (!joined.empty()) joined += ' ';
            joined += token;
        }
        results.append(nb::str(joined.data(), joined.size()));
    }
    return results;
}

void bind_ptb(nb::module_& m) { m.def("ptb_tokenise", &ptb_tokenise, nb::arg("captions")); }

}  // namespace caplens
