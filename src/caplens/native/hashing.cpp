#include "hashing.h"

#include <random>

namespace caplens {

namespace {

HashKeys drawn_keys() {
    std::random_device system;  // the operating system's own source
    const auto number = [&] { return std::uint64_t{system()} << 32 | system(); };
    return {number(), number() | 1, number()};
}

}  // namespace

const HashKeys hash_keys = drawn_keys();

}  // namespace caplens
