// Logarithms and powers of e by the C library, one number at a time. NumPy computes them with other instructions on
// other processors, and the last bit differs; a score that equals the official one must do so on every machine.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstddef>

namespace nb = nanobind;

namespace caplens {
namespace {

using Input = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

template <double (*function)(double)>
Output each(const Input& values) {
    const std::size_t size = values.shape(0);
    double* results = new double[size];
    const nb::capsule owner(results, [](void* memory) noexcept { delete[] static_cast<double*>(memory); });
    for (std::size_t i = 0; i < size; ++i) results[i] = function(values.data()[i]);
    return Output(results, {size}, owner);
}

double logarithm(double value) { return std::log(value); }
double exponential(double value) { return std::exp(value); }

}  // namespace

void bind_elementwise(nb::module_& m) {
    m.def("log_each", &each<logarithm>, nb::arg("values"));
    m.def("exp_each", &each<exponential>, nb::arg("values"));
}

}  // namespace caplens
