"""Where a bar shows how far something is, and where nothing does."""

import io
import sys

import pytest

from kafkalog.views.progress import progress_bar, quiet


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Cell(io.StringIO):
    """The stderr of a cell of a notebook: `isatty` of Jupyter's own says no, too."""


Cell.__module__ = "ipykernel.iostream"


def shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, is_quiet: bool = False) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with quiet(is_quiet), progress_bar(10, "exporting") as bar:
        bar.update(5, "7 records")
    return stream.getvalue()


def test_a_terminal_has_a_bar_that_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(Terminal(), monkeypatch)
    assert "exporting" in text and "50%" in text and "7 records" in text
    assert text.endswith("\x1b[1A\x1b[2K")


def test_a_cell_of_a_notebook_keeps_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(Cell(), monkeypatch)
    assert "50%" in text and "7 records" in text and not text.endswith("\x1b[2K")


def test_a_pipe_has_none_and_a_quiet_block_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(io.StringIO(), monkeypatch) == ""
    assert shown(Terminal(), monkeypatch, is_quiet=True) == ""
    assert shown(Cell(), monkeypatch, is_quiet=True) == ""
