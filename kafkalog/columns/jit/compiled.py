"""The decorators that make kernels, and the types that kernels take.

The functions defined here are the plain ones; the other modes replace them (see __init__.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kafkalog.columns.jit import kernel_mode

_Function = TypeVar("_Function", bound=Callable[..., Any])

ByteArray = NDArray[np.uint8]
LongArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int32]

COMPILED = kernel_mode() != "plain"


def kernel(function: _Function) -> _Function:
    """Make a function over arrays and integers a kernel: machine code that is compiled once and
    kept on disk. Its integers have 64 bits and wrap."""

    def plain(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*arguments)

    return plain  # type: ignore[return-value]


inlined_kernel = kernel


def copy_bytes(
    target: ByteArray, target_start: int, source: ByteArray, source_start: int, size: int
) -> None:
    """Copy `size` bytes, as machine code by memcpy."""
    target[target_start : target_start + size] = source[source_start : source_start + size]


def prefetch(data: ByteArray, index: int) -> None:
    """Make the processor fetch data[index], which is needed soon; any index is allowed."""


if TYPE_CHECKING:
    long = int
else:
    # The integer that kernels count with.
    long = np.int64
    if kernel_mode() == "stored":
        from kafkalog.columns.jit import stored_kernels as made
    elif COMPILED:
        from kafkalog.columns.jit import numba_kernels as made
    if COMPILED:
        kernel, inlined_kernel = made.kernel, made.inlined_kernel
        copy_bytes, prefetch = made.copy_bytes, made.prefetch
