"""Files of machine code, each with a line about it and a checksum.

They lie where numba would keep its own: beside the modules, else in the user's cache directory,
else in a directory of the user's own for temporary files. What is kept is executed: nobody else may
be able to write there.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from kafkalog.columns.kernel_cache import own_directory, user_cache

_SUFFIX = ".kernel"
_DIGEST_BYTES = 32


def kept_code(name: str) -> tuple[bytes, bytes] | None:
    """What is kept under a name: the line and the code; None where nothing sound is."""
    for folder in _folders():
        with suppress(OSError):
            data = (folder / f"{name}{_SUFFIX}").read_bytes()
            digest, kept = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
            if hashlib.sha256(kept).digest() == digest:
                line, _, code = kept.partition(b"\n")
                return line, code
    return None


def keep_code(name: str, line: bytes, code: bytes) -> None:
    """Keep it in the first place where that is possible, if there is one."""
    kept = line + b"\n" + code
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as own:
                path = Path(own, name)
                path.write_bytes(hashlib.sha256(kept).digest() + kept)
                # Whole or not at all, whoever else writes it.
                path.replace(folder / f"{name}{_SUFFIX}")
            return


def _folders() -> Iterator[Path]:
    package = Path(__file__).parent
    if package.is_dir():  # else in a zip file
        yield package / "__pycache__"
    yield user_cache() / "kafkalog"
    own = own_directory()
    if own is not None:
        yield Path(own)
