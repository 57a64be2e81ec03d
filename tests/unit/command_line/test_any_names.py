"""Names of groups and of files can be anything: a terminal is not told what to do by them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.testing import LogDirectory
from kafkalog.words import printable
from tests.support.repository import ROOT

CODE = "from kafkalog.command_line.main import main; main()"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("orders", "orders"),
        ("zwölf Gruppen", "zwölf Gruppen"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("two\nlines", "two\\nlines"),
        ("\udcff", "\\udcff"),
        ("a\u202eb\u2066\u200f\u061c", "a\\u202eb\\u2066\\u200f\\u061c"),
    ],
)
def test_what_a_terminal_would_act_on_is_escaped(text: str, told: str) -> None:
    assert printable(text) == told


@pytest.mark.parametrize("table_format", ["text", "json", "csv"])
def test_a_file_whose_name_is_not_text_is_named_all_the_same(
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
    assert b"\\udcff\\x1b, 0 B: not a file that brokers write" in said
    if table_format == "json":
        assert json.loads(run.stdout)["topic"] == "orders"


# What turns the direction of writing, ends a line, or is a control of two bytes in UTF-8.
TURNING = [
    *(0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    *(0x2028, 0x2029, 0x80, 0x85, 0x9B, 0x9F),
]

SHOWING = (("dump", "--deep"), ("find", "--value-contains", "alue"), ("groups", "--verbose"))


@pytest.mark.parametrize("code", TURNING)
@pytest.mark.parametrize("table_format", ["text", "json"])
def test_keys_and_values_turn_nothing_in_a_terminal(
    tmp_path: Path, code: int, table_format: str
) -> None:
    turning = chr(code)
    directory = LogDirectory(tmp_path / "data")
    directory.topic("orders").records([(f"k{turning}ey é", f"v{turning}alue €😀")])
    directory.commit_offsets(f"g{turning}roup", {("orders", 0): 1})
    for arguments in SHOWING:
        given = [*arguments, directory.write(), "--format", table_format]
        run = CliRunner().invoke(kafkalog, given)
        assert run.exit_code == 0
        printed = run.stdout + run.stderr
        assert turning not in printed
        if arguments[0] == "dump":
            as_json, as_bytes = f"\\u{code:04x}", "".join(f"\\x{b:02x}" for b in turning.encode())
            sequence = as_json if table_format == "json" else as_bytes
            for text in (f"k{sequence}ey é", f"v{sequence}alue €😀", f"g{sequence}roup"):
                assert text in printed
        if table_format == "json" and arguments[0] == "dump":
            records = [json.loads(line) for line in run.stdout.splitlines()]
            assert f"k{turning}ey é" in [each.get("key") for each in records]


COMMANDS = (
    ("ls", "--by", "partition"),
    ("ls", "--by", "segment"),
    ("check",),
    ("dump",),
    ("dump", "--deep"),
    ("find", "--topic", "e.w", "--value-contains", "a"),
    ("groups",),
    ("txns",),
    ("get-offsets",),
    ("recover",),
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory in whose names, and files, a terminal would find commands."""
    root = tmp_path_factory.mktemp("hostile") / "a\x1b[2J\x9b31mb\udcff"
    shutil.copytree(ROOT / "examples" / "log-dirs" / "damaged", root)
    shutil.copytree(root / "e.w-0", root / "t\x1b]0;x\x07e.w-0")
    (root / "unknown\x1b[31m").touch()
    (root / "replication-offset-checkpoint").write_text("0\n1\n\x1b[2Jlost 0 5\n")
    (root / "meta.properties").write_text("version=1\n\x1b[2J=\x07\n")
    return root


@pytest.mark.parametrize("table_format", ["text", "json"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_what_a_terminal_would_act_on(
    hostile: Path, command: tuple[str, ...], table_format: str
) -> None:
    run = CliRunner().invoke(kafkalog, [*command, str(hostile), "--format", table_format])
    # JSON is for programs: only what JSON itself does not allow is escaped.
    forbidden = {
        chr(code) for code in (*range(32), *range(127, 160 if table_format == "text" else 127))
    }
    assert (set(run.output + run.stderr) - {"\n"}) & forbidden == set()
    assert run.exit_code in (0, 1, 3), run.output


@pytest.mark.parametrize("table", [False, True])
def test_tables_have_paths_that_are_not_text_as_they_are_printed(
    table: bool, hostile: Path, tmp_path: Path
) -> None:
    # Strings of Arrow are UTF-8, names of files any bytes.
    if table:
        given = ["export", str(hostile), "--topic", "e.w", "--mode", "PERMISSIVE"]
        given += ["--output-dir", str(tmp_path)]
        column, output = "input_path", tmp_path / "ingest_manifest"
    else:
        output = tmp_path / "dumped.parquet"
        given = ["dump", str(hostile / "e.w-0"), "--output", str(output)]
        column = "file"
    run = CliRunner().invoke(kafkalog, given)
    assert run.exit_code == 0, run.output
    paths = pq.read_table(output).column(column).unique().to_pylist()
    assert len(paths) > 0
    assert all("\\udcff" in path for path in paths)
