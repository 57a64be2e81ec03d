"""Kernels: how they run, and where their machine code is kept.

The environment variable KAFKALOG_KERNELS says how they run: `compiled` by numba, which is the
default; `stored`, as machine code that is loaded without importing numba, which programs that are
to start fast prefer; `plain`, as Python functions, which are slow and open to a debugger.
"""

from __future__ import annotations

import os

_preferred = "compiled"


def prefer_stored() -> None:
    """Prefer `stored`. Call this before importing a kernel."""
    global _preferred
    _preferred = "stored"


def kernel_mode() -> str:
    """Return `compiled`, `stored` or `plain`."""
    return os.environ.get("KAFKALOG_KERNELS", _preferred)
