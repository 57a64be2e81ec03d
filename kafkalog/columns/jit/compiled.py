"""What makes a kernel, and the types that kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kafkalog.columns.jit.kernel_mode import PLAIN, STORED, kernel_mode

__all__ = [
    "COMPILED",
    "BoolArray",
    "ByteArray",
    "IntArray",
    "LongArray",
    "copy_bytes",
    "inlined_kernel",
    "kernel",
    "long",
    "prefetch",
]

ByteArray = NDArray[np.uint8]
LongArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int32]

# The integer that kernels count with: 64 bits, wrapping.
if TYPE_CHECKING:
    long = int
else:
    long = np.int64

COMPILED = kernel_mode() != PLAIN

if kernel_mode() == PLAIN:
    from kafkalog.columns.jit.plain_kernels import copy_bytes, inlined_kernel, kernel, prefetch
elif kernel_mode() == STORED:
    from kafkalog.columns.jit.stored_kernels import copy_bytes, inlined_kernel, kernel, prefetch
else:
    from kafkalog.columns.jit.numba_kernels import copy_bytes, inlined_kernel, kernel, prefetch
