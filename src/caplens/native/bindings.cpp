// The one Python extension: every kernel registers itself here.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

NB_MODULE(_kernels, m) {
    m.doc() = "caplens native kernels; each has a naive twin in tests/native";
}
