"""Kernels: how they run, and where their machine code is kept.

The environment variable KAFKALOG_KERNELS says how they run: `compiled` by numba, which is the
default; `stored`, as machine code that is loaded without importing numba, which programs that are
to start fast prefer; `plain`, as Python functions, which are slow and open to a debugger.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable

_preferred = "compiled"
_on_compile: Callable[[], None] | None = None
# Processes that this one forks have it in common: one of them says that kernels are compiled.
_is_said = mmap.mmap(-1, 1)


def prefer_stored(on_compile: Callable[[], None]) -> None:
    """Prefer `stored`, and call `on_compile` before the first kernel is compiled, if one has to be.
    Call this before importing a kernel."""
    global _preferred, _on_compile
    _preferred, _on_compile = "stored", on_compile


def announce_compiling() -> None:
    """Call what `prefer_stored` was given, in one of this process and its forks."""
    if _on_compile is not None and not _is_said[0]:
        _is_said[0] = 1
        _on_compile()


def kernel_mode() -> str:
    """Return `compiled`, `stored` or `plain`."""
    return os.environ.get("KAFKALOG_KERNELS", _preferred)
