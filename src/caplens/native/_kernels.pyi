"""Types of the native kernels (src/caplens/native/*.cpp)."""
