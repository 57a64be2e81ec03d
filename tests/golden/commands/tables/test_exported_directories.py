"""A directory of tables that commands wrote, given where logs are wanted. F938."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from tests.support.repository import ROOT

LOGS = ROOT / "examples" / "shop-week"
# Records of the three partitions of orders and of customers, by examples/shop-week's maker.
RECORDS = 3486


def run(*given: object) -> Result:
    return CliRunner().invoke(kafkalog, [*map(str, given)])


def shown_by(line: str) -> str:
    """What a line for a shell prints, run by this Python."""
    command, *arguments = shlex.split(line)
    assert command == "python"
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("table_format", ["parquet", "iceberg", "delta"])
def test_an_export_ends_with_the_line_that_queries_its_table(
    table_format: str, tmp_path: Path
) -> None:
    output = tmp_path / "it's here"
    result = run("export", LOGS, "--output-dir", output, "--format", table_format)
    line = result.stdout.splitlines()[-1].removeprefix("query: ")
    assert f"{RECORDS} rows" in shown_by(line)
    # The same line is in the error of a command that reads logs, whatever folder is given.
    table = next(output.rglob("ingested_records"))
    for command in (("ls", output), ("check", table), ("sql", output, "select 1 from records")):
        refused = run(*command)
        assert (refused.exit_code, refused.stdout) == (ExitCode.UNREADABLE_INPUT, "")
        assert "not a log directory, but a directory of tables" in refused.stderr
        assert str(table) in refused.stderr
        assert refused.stderr.endswith(f"; to query one: {line}\n")


@pytest.mark.parametrize("table_format", ["parquet", "json"])
def test_a_table_of_an_answer_is_named_too(table_format: str, tmp_path: Path) -> None:
    run("groups", LOGS, "--output-dir", tmp_path, "--format", table_format)
    line = run("groups", tmp_path).stderr.partition("; to query one: ")[2]
    assert "9 rows" in shown_by(line)
    # Files alone are not a table.
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "consumer_lag").rename(other / "settings")
    (other / "settings" / "_SUCCESS").unlink()
    assert "none up to 2 levels below it" in run("groups", other).stderr
