"""C++ kernels, only what a profile asked for; typed in ``_kernels.pyi``."""

__all__ = ["_kernels"]
