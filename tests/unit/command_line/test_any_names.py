"""Names of groups and of files can be anything: a terminal is not told what to do by them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalog.words import printable

CODE = "from kafkalog.command_line.main import main; main()"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("orders", "orders"),
        ("zwölf Gruppen", "zwölf Gruppen"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("two\nlines", "two\\nlines"),
        ("\udcff", "\\udcff"),
    ],
)
def test_what_a_terminal_would_act_on_is_escaped(text: str, told: str) -> None:
    assert printable(text) == told


@pytest.mark.parametrize("table_format", ["text", "json", "csv"])
def test_a_file_whose_name_is_no_text_is_named_all_the_same(
    tmp_path: Path, table_format: str
) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").touch()
    path = os.fsencode(directory)
    with open(os.path.join(path, b"\xff\x1b"), "wb"):
        pass
    given = ["ls", str(tmp_path), "--format", table_format]
    run = subprocess.run([sys.executable, "-c", CODE, *given], capture_output=True, check=True)
    said = run.stdout if table_format == "text" else run.stderr
    assert b"\\udcff\\x1b, 0 B: nothing that a broker puts there" in said
    if table_format == "json":
        assert json.loads(run.stdout)["topic"] == "orders"
