// Memory for large arrays that are read at random places.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace caplens {

// Asks for huge pages where the system has them: otherwise every read waits for the page to be found, too.
template <class T>
struct HugePages {
    using value_type = T;
    static constexpr std::size_t kPage = std::size_t{1} << 21;

    HugePages() = default;
    template <class Other>
    HugePages(const HugePages<Other>&) {}

    T* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        if (bytes < kPage) return static_cast<T*>(::operator new(bytes));
        void* memory = ::operator new(bytes, std::align_val_t{kPage});
#ifdef __linux__
        madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: if it is not granted, nothing is lost
#endif
        return static_cast<T*>(memory);
    }

    void deallocate(T* memory, std::size_t count) {
        if (count * sizeof(T) < kPage)
            ::operator delete(memory);
        else
            ::operator delete(memory, std::align_val_t{kPage});
    }

    template <class Other>
    bool operator==(const HugePages<Other>&) const {
        return true;
    }
};

template <class T>
using LargeVector = std::vector<T, HugePages<T>>;

}  // namespace caplens
