"""How kernels run: what the environment variable KAFKALOG_KERNELS says, else as the program likes.

`compiled` by numba, which keeps machine code in its cache; `stored`: machine code is kept so that
numba itself is not even imported, for programs that are to start fast; `plain`: ordinary Python
functions, slow, and open to a debugger.
"""

from __future__ import annotations

import os

COMPILED, STORED, PLAIN = "compiled", "stored", "plain"

_VARIABLE = "KAFKALOG_KERNELS"
_preferred = COMPILED


def prefer_stored() -> None:
    """Start fast; to be called before any kernel is imported."""
    global _preferred
    _preferred = STORED


def kernel_mode() -> str:
    """COMPILED, STORED or PLAIN."""
    return os.environ.get(_VARIABLE, _preferred)
