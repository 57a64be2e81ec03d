"""What the machine code of a kernel is made of: its own code, and all that it names.

Unlike the times of files, it changes with a constant of another file and with a kernel that is
called.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np


def fingerprint(function: Callable[..., Any]) -> str:
    """A hash of a function's code and of the global variables in it."""
    code, known = function.__code__, function.__globals__
    named = [_made_of(known[name]) for name in code.co_names if name in known]
    made_of = (code.co_code, code.co_consts, code.co_varnames, code.co_names, named)
    return hashlib.sha256(repr(made_of).encode()).hexdigest()


def _made_of(value: object) -> str:
    """What a global variable of a kernel is."""
    if hasattr(value, "fingerprint"):
        return str(value.fingerprint)
    if hasattr(value, "py_func"):  # numba's own kernel
        return fingerprint(value.py_func)
    if isinstance(value, np.ndarray):
        return repr((value.dtype, value.shape, value.tobytes()))
    return repr((value, getattr(value, "_fields", None)))
