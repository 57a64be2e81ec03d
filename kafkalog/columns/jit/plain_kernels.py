"""Kernels as ordinary Python functions: slow, and open to a debugger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """The function itself; its 64-bit arithmetic wraps silently, as machine code's does."""

    def plain(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*arguments)

    return plain  # type: ignore[return-value]


inlined_kernel = kernel


def copy_bytes(
    target: NDArray[np.uint8],
    target_start: int,
    source: NDArray[np.uint8],
    source_start: int,
    size: int,
) -> None:
    """Copy `size` bytes."""
    target[target_start : target_start + size] = source[source_start : source_start + size]


def prefetch(data: NDArray[np.uint8], index: int) -> None:
    """Nothing: only machine code can."""
