"""What a new JVM writes to stderr at every start: that Spark uses a module of Java's incubator, and
what Ivy says while it fetches jars, 45 lines, which only a failure needs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import BufferedReader
from typing import BinaryIO

# Java says so, and has no option against it.
_INCUBATOR = b"WARNING: Using incubator modules:"
_FIRST = b":: loading settings ::"
_FETCHED = b"downloading "
_LAST = b" already retrieved ("

_JOINED_WITHIN_S = 10


@contextmanager
def without_start_output(notice: str) -> Iterator[None]:
    """Let a JVM that is started in the block write all but the lines of its start to stderr, as
    long as it runs; in place of Ivy's `notice` is printed once. Where the JVM ends before Ivy is
    done, Ivy's lines are written after all."""
    try:
        stderr = os.dup(2)
    except OSError:  # closed
        yield
        return
    reading, writing = os.pipe()
    start = _Start(notice)
    passed_on = threading.Thread(target=start.pass_on, args=(reading, stderr), daemon=True)
    passed_on.start()
    try:
        with _as_stderr(writing):
            yield
    except Exception:
        # What Ivy says of it comes before what the job says.
        passed_on.join(_JOINED_WITHIN_S)
        raise
    finally:
        start.is_over.set()


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


class _Start:
    """Holds back lines of a start, until it is over."""

    def __init__(self, notice: str) -> None:
        self.is_over = threading.Event()
        self._notice = notice
        self._ivys: list[bytes] = []
        self._is_told = False

    def pass_on(self, reading: int, writing: int) -> None:
        """Write what is read, up to its end."""
        with open(reading, "rb") as source, open(writing, "wb", buffering=0) as target:
            self._pass_on_lines(source, target)
            while some := source.read1():
                target.write(some)

    def _pass_on_lines(self, source: BufferedReader, target: BinaryIO) -> None:
        """Read by lines until the start is over: a progress bar has no lines."""
        rest = b""
        while some := source.read1():
            *lines, rest = (rest + some).split(b"\n")
            for line in lines:
                self._pass_on_line(line + b"\n", target)
            if self.is_over.is_set() and not self._ivys:
                target.write(rest)
                return
        target.write(b"".join([*self._ivys, rest]))

    def _pass_on_line(self, line: bytes, target: BinaryIO) -> None:
        if line.startswith(_FIRST) or self._ivys:
            self._ivys.append(line)
            if line.startswith(_FETCHED) and not self._is_told:
                target.write(f"{self._notice}\n".encode())
                self._is_told = True
            if _LAST in line:
                self._ivys.clear()
        elif not line.startswith(_INCUBATOR):
            target.write(line)
