#include "interrupt.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace caplens {

void Interrupt::look() {
    done_ = 0;
    nb::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace caplens
