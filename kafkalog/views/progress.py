"""A bar on stderr for how far commands and exports are, on terminals and in notebooks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

import click

# Of Jupyter's kernel: the module of the streams of a notebook's cells.
_KERNEL = "ipykernel."
_is_quiet: ContextVar[bool] = ContextVar("whether progress is hidden", default=False)


@contextmanager
def quiet(is_quiet: bool = True) -> Iterator[None]:
    """Show no bar in the block, if `is_quiet`."""
    before = _is_quiet.set(is_quiet or _is_quiet.get())
    try:
        yield
    finally:
        _is_quiet.reset(before)


@contextmanager
def progress_bar(length: int, label: str = "", *, hidden: bool = False) -> Iterator[Any]:
    """Show a bar on stderr for `length` bytes, which `update(n)` moves; `update(n, text)` also
    shows a text beside the time that is left.

    On a terminal it disappears when the work is done, in a notebook it stays. It is not shown if
    stderr is neither, if `hidden`, or in a block of `quiet`.
    """
    stream, is_terminal = sys.stderr, sys.stderr.isatty()
    is_notebook = type(stream).__module__.startswith(_KERNEL)
    is_hidden = hidden or _is_quiet.get() or not (is_terminal or is_notebook)
    with click.progressbar(
        length=length,
        label=label,
        file=_Redrawn(stream) if is_notebook else stream,  # type: ignore[arg-type]
        hidden=is_hidden,
        item_show_func=lambda text: text,
    ) as bar:
        yield bar
    if is_terminal and not is_hidden:
        # The line above, where the bar was.
        click.echo("\x1b[1A\x1b[2K", nl=False, err=True)


class _Redrawn:
    """A notebook's stream. Like a terminal, it shows what follows a carriage return in place of the
    line; it does not say so."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
