// Ctrl-C inside long loops.
#pragma once

#include <algorithm>
#include <cstddef>

namespace caplens {

// Counts the work of a kernel and looks for signals about every 50 ms, whether the kernel holds the GIL or not. A Python
// handler that raises (KeyboardInterrupt) ends the kernel with that exception.
class Interrupt {
public:
    // So many more steps of about a nanosecond were done.
    void after(std::size_t steps) {
        done_ += steps;
        if (done_ >= kPause) look();
    }

    // The same at the head of a short loop over `count` things, with so many steps each: costs little where they are few.
    void in_loop(std::size_t at, std::size_t count, std::size_t steps) {
        if (at % 1024 == 0) after(steps * std::min<std::size_t>(count - at, 1024));
    }

private:
    static constexpr std::size_t kPause = 50'000'000;
    void look();
    std::size_t done_ = 0;
};

}  // namespace caplens
