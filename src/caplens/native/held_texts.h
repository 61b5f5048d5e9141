// Strings of Python lists that a kernel works on without the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>
#include <vector>

namespace caplens {

// An item of a list that another thread may have shortened since.
inline nanobind::object item_of(const nanobind::list& list, std::size_t index) {
    nanobind::object item = nanobind::steal(PySequence_GetItem(list.ptr(), static_cast<Py_ssize_t>(index)));
    if (!item.is_valid()) throw nanobind::python_error();
    return item;
}

// Keeps strings alive, whatever becomes of the lists they stand in; to be changed only with the GIL.
class HeldTexts {
public:
    std::string_view add(nanobind::handle text) {
        if (!PyUnicode_Check(text.ptr())) throw nanobind::type_error("texts must be strings");
        Py_ssize_t size = 0;
        const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (data == nullptr) throw nanobind::python_error();
        held_.push_back(nanobind::borrow(text));
        return {data, static_cast<std::size_t>(size)};
    }
    void clear() { held_.clear(); }

private:
    std::vector<nanobind::object> held_;
};

}  // namespace caplens
