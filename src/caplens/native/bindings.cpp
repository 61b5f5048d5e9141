// The one Python extension: every kernel registers itself here.
#include <nanobind/nanobind.h>

#include <filesystem>

namespace nb = nanobind;

namespace caplens {
void bind_arcs(nb::module_& m);
void bind_corpus(nb::module_& m);
void bind_elementwise(nb::module_& m);
void bind_kendall(nb::module_& m);
void bind_meteor(nb::module_& m);
void bind_ptb(nb::module_& m);
void bind_wmd(nb::module_& m);
}

namespace {

// A file that cannot be opened or written is an OSError, as everywhere in Python.
void as_os_error(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const std::filesystem::filesystem_error& error) {
        const nb::tuple details = nb::make_tuple(error.code().value(), error.code().message().c_str(), error.path1().c_str());
        PyErr_SetObject(PyExc_OSError, details.ptr());
    }
}

}  // namespace

NB_MODULE(_kernels, m) {
    m.doc() = "caplens native kernels; each has a naive twin in tests/native";
    nb::register_exception_translator(as_os_error);
    caplens::bind_arcs(m);
    caplens::bind_corpus(m);
    caplens::bind_elementwise(m);
    caplens::bind_kendall(m);
    caplens::bind_meteor(m);
    caplens::bind_ptb(m);
    caplens::bind_wmd(m);
}
