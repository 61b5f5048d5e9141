"""Types of the native kernels (src/caplens/native/*.cpp)."""

import numpy as np
from numpy.typing import NDArray

def kendall_resampled(
    x: NDArray[np.int32], y: NDArray[np.int32], units: NDArray[np.int32], weights: NDArray[np.int32]
) -> NDArray[np.float64]: ...
def kendall_swapped(
    a: NDArray[np.int32],
    b: NDArray[np.int32],
    y: NDArray[np.int32],
    units: NDArray[np.int32],
    masks: NDArray[np.uint8],
) -> NDArray[np.float64]: ...
def ptb_tokenise(captions: list[str]) -> list[str]: ...
