"""Files of machine code: their names, which are hashes of all that goes into the code, and the
directories that they may lie in.

What is loaded is executed: nothing is loaded or written elsewhere than in `own_directories`.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from kafkalog.log_lines import logger
from kafkalog.storage.files.own_directories import is_own, own_directories, user_cache

_Result = TypeVar("_Result")
_logger = logger(__name__)

_SUFFIX = ".kernel"
_DIGEST_BYTES = 32


def code_name(kernel_name: str, *made_of: object) -> str:
    """Return the name of a kernel's file: a hash of all that its machine code is made of."""
    # numba compiles other code if this is set.
    parts = (os.environ.get("NUMBA_BOUNDSCHECK"), numba_version(), *made_of)
    return f"{kernel_name}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"


@cache
def numba_version() -> bytes:
    """Return what the installed numba has as its version, without importing it."""
    found = find_spec("numba")
    with suppress(OSError):
        return Path(str(found and found.origin)).with_name("_version.py").read_bytes()
    return b""


def fingerprint(function: Callable[..., Any]) -> str:
    """Return a hash of a function's code and of the global variables in it, called kernels and
    constants of other files among them."""
    code, known = function.__code__, function.__globals__
    named = [_made_of(known[name], code.co_names) for name in code.co_names if name in known]
    made_of = (code.co_code, code.co_consts, code.co_varnames, code.co_names, named)
    return hashlib.sha256(repr(made_of).encode()).hexdigest()


def _made_of(value: object, attributes: tuple[str, ...]) -> str:
    """Return what code is made of that reads these attributes, if they are the value's."""
    if isinstance(value, ModuleType) and value.__name__.startswith("kafkalog."):
        read = [vars(value)[name] for name in attributes if name in vars(value)]
        return repr([_made_of(each, attributes) for each in read])
    if hasattr(value, "fingerprint"):
        return str(value.fingerprint)
    if hasattr(value, "py_func"):  # numba's own kernel
        return fingerprint(value.py_func)
    if isinstance(value, np.ndarray):
        return repr((value.dtype, value.shape, value.tobytes()))
    return repr((value, getattr(value, "_fields", None)))


def unless_changed(step: Callable[[], _Result]) -> _Result | None:
    """Return the result of a step that uses internals of numba or llvmlite. If it fails, log that
    once in a process and return None: numba compiles the kernel then, and may not keep it."""
    try:
        return step()
    except Exception as error:  # noqa: BLE001 internals can fail in any way
        if not _reported:
            _reported.append(str(error))
            _logger.warning(
                "kernels start more slowly: internals of numba or llvmlite have changed (%r)", error
            )
        return None


_reported: list[str] = []


def kept_code(name: str) -> bytes | None:
    """Return the code that is kept under a name, None if there is no sound file of it."""
    for folder in own_directories(_candidates()):
        with suppress(OSError):
            data = _read(folder / f"{name}{_SUFFIX}")
            digest, code = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
            if hashlib.sha256(code).digest() == digest:
                return code
    return None


def keep_code(name: str, code: bytes) -> None:
    """Keep the code in the first directory that can be written to, if any."""
    for folder in own_directories(_candidates(), make=True):
        with suppress(OSError):
            with tempfile.TemporaryDirectory(dir=folder) as own:
                path = Path(own, name)
                path.write_bytes(hashlib.sha256(code).digest() + code)
                path.chmod(0o644)  # whatever the umask is
                # Whole or not at all, whoever else writes it.
                path.replace(folder / f"{name}{_SUFFIX}")
            return


def _candidates() -> Iterator[Path]:
    package = Path(__file__).parent
    if package.is_dir():  # else in a zip file
        yield package / "__pycache__"
    yield Path(os.environ.get("NUMBA_CACHE_DIR", ""))
    yield user_cache()
    with suppress(OSError):
        yield Path(tempfile.gettempdir(), f"kafkalog-kernels-{os.geteuid()}")


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        return file.read() if stat.S_ISREG(found.st_mode) and is_own(found) else b""
