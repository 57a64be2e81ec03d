"""What Ivy writes to stderr while a new JVM fetches jars: 45 lines, which only a failure needs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import BinaryIO

_FIRST = b":: loading settings ::"
_FETCHED = b"downloading "
_LAST = b" already retrieved ("

_JOINED_WITHIN_S = 10


@contextmanager
def without_ivy_output(notice: str) -> Iterator[None]:
    """Let a JVM that is started in the block write all but Ivy's lines to stderr, as long as it
    runs; in their place `notice` is printed once. Where the JVM ends before Ivy is
    done, Ivy's lines are written after all."""
    try:
        stderr = os.dup(2)
    except OSError:  # closed
        yield
        return
    reading, writing = os.pipe()
    passed_on = threading.Thread(target=_pass_on, args=(reading, stderr, notice), daemon=True)
    passed_on.start()
    try:
        with _as_stderr(writing):
            yield
    except Exception:
        # What Ivy says of it comes before what the job says.
        passed_on.join(_JOINED_WITHIN_S)
        raise


@contextmanager
def _as_stderr(descriptor: int) -> Iterator[None]:
    """Let the descriptor be stderr of what is started in the block, but not this process's own."""
    sys.stderr.flush()
    before = os.dup(2)
    with open(before, "w") as own, redirect_stderr(own):
        os.dup2(descriptor, 2)
        os.close(descriptor)
        try:
            yield
        finally:
            os.dup2(before, 2)


def _pass_on(reading: int, writing: int, notice: str) -> None:
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as target:
        _pass_on_ivys(source, target, notice)
        while some := source.read1():
            target.write(some)


def _pass_on_ivys(source: BinaryIO, target: BinaryIO, notice: str) -> None:
    """Read up to where Ivy is done, and hold its lines back."""
    held: list[bytes] = []
    is_told = False
    for line in source:
        if not held and not line.startswith(_FIRST):
            target.write(line)
            continue
        held.append(line)
        if line.startswith(_FETCHED) and not is_told:
            target.write(f"{notice}\n".encode())
            is_told = True
        if _LAST in line:
            return
    target.write(b"".join(held))
