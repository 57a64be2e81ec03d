"""A run never writes one format's files into a table of another, nor tables into a table. Rule:
F938; with Delta: tests/jobs/tables/test_formats_in_one_place.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.lake.formats.found_tables import format_of_table
from kafkalog.testing import LogDirectory

pytestmark = pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    made = LogDirectory(tmp_path / "logs")
    made.topic("orders").records([("a", b"1")])
    made.write()
    return tmp_path / "logs"


def _exported(logs: Path, output: Path, *arguments: str) -> tuple[int, str]:
    command = ["export", str(logs), "--output-dir", str(output), *arguments]
    result = CliRunner().invoke(kafkalog, command)
    return result.exit_code, result.stderr


def _files(path: Path) -> set[str]:
    return {str(each.relative_to(path)) for each in path.rglob("*")}


@pytest.mark.parametrize(("first", "other"), [("parquet", "iceberg"), ("iceberg", "parquet")])
@pytest.mark.parametrize("per_topic", [(), ("--table-per-topic",)])
def test_a_table_of_another_format_is_refused(
    first: str, other: str, per_topic: tuple[str, ...], logs: Path, tmp_path: Path
) -> None:
    output = tmp_path / "lake"
    code, _ = _exported(logs, output, "--format", first, *per_topic)
    assert code == 0
    before = _files(output)
    code, stderr = _exported(logs, output, "--format", other, *per_topic)
    assert code == 2
    name = "orders" if per_topic else "ingested_records"
    place = output / "kafkalog" / name if first == "iceberg" else output / name
    line = (
        f"error: --output-dir: {place} is a table in format {first}, and this run writes {other}: "
        f"give --format {first}, or another directory than {output}"
    )
    assert stderr.splitlines()[-1].startswith(line)
    assert _files(output) == before


@pytest.mark.parametrize("table_format", ["parquet", "iceberg"])
@pytest.mark.parametrize("deeper", ["", "topic=orders", "data/new"])
def test_a_table_holds_no_tables(
    table_format: str, deeper: str, logs: Path, tmp_path: Path
) -> None:
    table = tmp_path / "lake" / "ingested_records"
    if table_format == "iceberg":
        table = tmp_path / "lake" / "kafkalog" / "ingested_records"
    _exported(logs, tmp_path / "lake", "--format", table_format)
    before = _files(tmp_path / "lake")
    for other in ("parquet", "iceberg"):
        code, stderr = _exported(logs, table / deeper, "--format", other)
        assert code == 2
        assert f"expected a directory of tables, such as {table.parent}" in stderr
    assert _files(tmp_path / "lake") == before


@pytest.mark.parametrize(
    ("files", "expected", "marked"),
    [
        (["_delta_log/00000000000000000000.json"], "delta", "delta"),
        (["_manifest.json"], "parquet", "parquet"),
        (["metadata/00000-a.metadata.json", "data/a.parquet"], "iceberg", "iceberg"),
        (["part-0.snappy.parquet", "_SUCCESS"], "parquet", "parquet"),
        (["part-0.json", "_SUCCESS"], "json", "json"),
        # Files that people put into a directory themselves do not make it a table.
        (["records.parquet"], "parquet", None),
        (["offsets.json"], "json", None),
        (["metadata/notes.txt", "a.csv"], None, None),
        (["ingested_records/_manifest.json", "catalog.db"], None, None),
        ([], None, None),
    ],
)
def test_what_a_directory_is(
    files: list[str], expected: str | None, marked: str | None, tmp_path: Path
) -> None:
    for name in files:
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).touch()
    assert format_of_table(str(tmp_path / "t")) == expected
    assert format_of_table(str(tmp_path / "t"), is_marked=True) == marked
