"""Tables on narrow terminals: nothing that answers is cut. Rule: docs/command-line.md F1426."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalog.command_line.fitting import Column, fitted, lines_of_cell
from tests.support.repository import ROOT


@pytest.mark.parametrize("width", [8, 16, 29])
def test_a_text_that_answers_goes_on_in_the_next_line(width: int) -> None:
    text = "leader 3 → 1, isr 1,2,3 → 1,2"
    lines = lines_of_cell("change", text, width)
    assert all(len(line) <= width for line in lines)
    assert " ".join(lines) == text


def test_a_name_that_is_longer_than_its_column_is_whole_too() -> None:
    lines = lines_of_cell("topic", "__consumer_offsets-12", 16)
    assert lines == ["__consumer_offse", "ts-12"]


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("client_id", "a-very-long-client-id", "a-ver…nt-id"),
        ("value", "a long value of a record", "a lon…ecord"),
        ("file", "/data/kafka/orders-0/00000000000000000042.log", "…/orders-0/…42.log"),
    ],
)
def test_other_texts_are_cut(name: str, text: str, shown: str) -> None:
    assert lines_of_cell(name, text, len(shown)) == [shown]


def test_the_columns_that_answer_are_left() -> None:
    names = ("topic", "bytes", "records", "clock", "last_timestamp_ms", "last_producer_id")
    columns = [Column(name, [name, "x" * 9], is_number=False) for name in names]
    kept = [names[place] for place in fitted(columns, 64)]
    assert {"topic", "bytes", "last_timestamp_ms", "last_producer_id"} <= {*kept}
    assert "clock" not in kept


def screen(columns: int, *arguments: str) -> str:
    """What a terminal of so many columns shows of a command."""
    controller, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "kafkalog", *arguments]
    with subprocess.Popen(
        command, stdout=terminal, stderr=subprocess.DEVNULL, env=environment, cwd=ROOT
    ) as process:
        os.close(terminal)
        found = bytearray()
        try:
            while data := os.read(controller, 65536):
                found += data
        except OSError:  # Linux ends a terminal so.
            pass
        os.close(controller)
        assert process.wait() == 0
    return found.decode().replace("\r", "")


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_change_of_the_metadata_is_whole_on_any_screen(columns: int) -> None:
    directory = Path("examples") / "controller"
    shown = screen(
        columns, "metadata", str(directory), "--diff", "377", "end", "--topic", "shop.raw"
    )
    assert all(len(line) <= columns for line in shown.splitlines())
    assert "…" not in shown
    words = " ".join(shown.split())
    assert "leader none → 1" in words or columns == 60
