// The one Python extension: every kernel registers itself here.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace caplens {
void bind_arcs(nb::module_& m);
void bind_corpus(nb::module_& m);
void bind_kendall(nb::module_& m);
void bind_meteor(nb::module_& m);
void bind_ptb(nb::module_& m);
void bind_wmd(nb::module_& m);
}

NB_MODULE(_kernels, m) {
    m.doc() = "caplens native kernels; each has a naive twin in tests/native";
    caplens::bind_arcs(m);
    caplens::bind_corpus(m);
    caplens::bind_kendall(m);
    caplens::bind_meteor(m);
    caplens::bind_ptb(m);
    caplens::bind_wmd(m);
}
