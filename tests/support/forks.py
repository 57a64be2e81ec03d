"""Functions that run in a fork of the tests' process, to be killed there: a new Python would first
import for a second what this process has."""

from __future__ import annotations

import os
import pkgutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from typing import IO, Any, NamedTuple


class Ended(NamedTuple):
    """How a process ended, as `subprocess.CompletedProcess` says it."""

    returncode: int
    stdout: str
    stderr: str


def in_a_fork(run: Callable[[], object]) -> Ended:
    """Run a function in a process of its own, and wait until that has ended."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with warnings.catch_warnings():
            # The threads of this process hold nothing that the function wants.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            _end_with(run, out, err)
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        return Ended(os.waitstatus_to_exitcode(status), out.read(), err.read())


def killed_at(
    name: str, run: Callable[[], object], call: int = 1, *, is_after: bool = False
) -> None:
    """Run a function in a fork that is killed when the function with a name is called for the
    `call`-th time, or has returned. Fails where the fork ends otherwise."""
    place, _, attribute = name.rpartition(".")
    owner = pkgutil.resolve_name(place)
    usual = getattr(owner, attribute)
    left = call

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            if is_after:
                usual(*given, **named)
            os.kill(os.getpid(), signal.SIGKILL)
        return usual(*given, **named)

    def run_counted() -> None:
        setattr(owner, attribute, counted)
        run()

    ended = in_a_fork(run_counted)
    assert ended.returncode == -signal.SIGKILL, ended


def _end_with(run: Callable[[], object], out: IO[str], err: IO[str]) -> None:
    """Be the child: run the function, and end without what this process does at its end."""
    code = 1
    try:
        for number, file in ((1, out), (2, err)):
            os.dup2(file.fileno(), number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w") for number in (1, 2))
        run()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        if sys.exception() is not None:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
