"""`kafkalog export`: what it adds run after run, what it says, and what it leaves when it fails.
Which offsets a run reads: tests/unit/lake/test_export_plan.py."""

import json
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from pyarrow import dataset

from kafkalog.command_line.main import kafkalog
from kafkalog.lake import export_plan
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from kafkalog.testing import LogDirectory
from kafkalog.views import parallel
from tests.support.lake.exports import sorted_rows, view_rows
from tests.support.lake.iceberg_tables import configure_catalog, current_snapshot, scanned
from tests.support.repository import SHOP

_ICEBERG = ("--format", "iceberg")

# The threads of other tests, such as Spark's, hold nothing that these processes want.
pytestmark = pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests have opened some in this process."""
    monkeypatch.setattr(parallel, "has_connections", lambda: False)


@pytest.fixture
def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few bytes there are, each process has tasks."""
    monkeypatch.setattr(export_plan, "LEAST_PART_BYTES", 1)


@pytest.fixture
def logs(tmp_path: Path) -> LogDirectory:
    made = LogDirectory(tmp_path / "logs")
    for name, count in (("orders", 30), ("users", 5)):
        made.topic(name, partitions=2).records([(str(key), b"value") for key in range(count)])
    return made


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["export", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def rows(table: Path) -> int:
    """The rows of a table, by Arrow's reader."""
    return int(dataset.dataset(table).count_rows())


def files(output: Path) -> list[Path]:
    return [path for path in output.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("many_tasks")
@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_says_what_it_added_and_the_next_adds_what_is_new(
    processes: int, logs: LogDirectory, tmp_path: Path
) -> None:
    output = tmp_path / "tables"
    given = (logs.write(), "--output-dir", output, "--processes", processes)
    query = (
        "query: python -c 'import duckdb; "
        f'duckdb.read_parquet("{output}/ingested_records/**/*.parquet").show()\''
    )
    code, out, err = run(*given)
    assert code == 0
    assert out.splitlines() == [
        "TOPIC   PARTITIONS  ROWS  OFFSETS  FINDINGS",
        "orders           2    30       30         0",
        "users            2     5        5         0",
        "read 35 offsets of 4 partitions",
        f"tables: {output}/ingested_records",
        query,
    ]
    assert err.startswith("found 4 segments of 4 partitions")
    logs._topics["users"].records([(b"k", b"v")] * 4, partition=1)
    logs.write()
    assert run(*given, "--show", 0)[1].splitlines() == [
        "read 4 offsets of 1 partition",
        f"tables: {output}/ingested_records",
        query,
    ]
    assert run(*given)[:2] == (0, "nothing is new\n")
    assert rows(output / "ingested_records") == 39


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (("--topic", "users"), "found 2 segments of 2 partitions, "),
        (("--topic-pattern", "^ord"), "found 2 segments of 2 partitions, "),
        (("--topic", "*"), "found 5 segments of 5 partitions, "),
    ],
)
def test_a_run_says_how_much_the_chosen_topics_have(
    given: tuple[str, str], found: str, logs: LogDirectory, tmp_path: Path
) -> None:
    logs.commit_offsets("billing", {("orders", 0): 3})
    code, _, err = run(logs.write(), "--output-dir", tmp_path / "tables", *given)
    assert code == 0 and err.startswith(found)


@pytest.mark.usefixtures("many_tasks")
@pytest.mark.parametrize("processes", [1, 2])
def test_an_iceberg_table_has_the_rows_of_the_view_and_a_second_run_adds_nothing(
    processes: int, tmp_path: Path
) -> None:
    # F660
    given = (SHOP, *_ICEBERG, "--output-dir", tmp_path, "--processes", processes)
    code, out, err = run(*given, "--table", "raw.records")
    tables, query = out.splitlines()[-2:]
    assert (code, tables) == (0, f"tables: {tmp_path}/raw/records"), err
    assert query.startswith("query: python -c 'from pyiceberg.catalog import load_catalog")
    table = IcebergTable("raw.records", output_dir=str(tmp_path))
    assert sorted_rows(scanned(table)) == view_rows([SHOP])
    snapshot = current_snapshot(table)
    assert run(*given, "--table", "raw.records")[:2] == (0, "nothing is new\n")
    assert current_snapshot(table) == snapshot
    table.catalog.close()


def test_each_topic_has_an_iceberg_table_in_a_catalog(
    logs: LogDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # F536
    configure_catalog(monkeypatch, tmp_path)
    code, out, err = run(logs.write(), *_ICEBERG, "--catalog", "lake", "--table-per-topic")
    assert (code, out.splitlines()[-1]) == (0, "tables: kafkalog.orders kafkalog.users"), err
    table = IcebergTable("users", catalog="lake")
    assert len(scanned(table)) == 5
    table.catalog.close()


@pytest.mark.parametrize("module", ["pyiceberg", "sqlalchemy"])
def test_without_pyiceberg_a_line_says_what_to_install(
    module: str, logs: LogDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    code, out, err = run(logs.write(), *_ICEBERG, "--output-dir", tmp_path / "tables")
    assert (code, out) == (3, "")
    assert err.splitlines()[-1] == (
        f"error: this needs {module}, which is not installed: pip install 'kafkalog[iceberg]'"
    )
    assert not (tmp_path / "tables").exists()


def test_where_the_tables_end_is_written_for_sparks_kafka_source(
    logs: LogDirectory, tmp_path: Path
) -> None:
    # F534
    output = tmp_path / "tables"
    ends = tmp_path / "ends.json"
    code, _, _ = run(
        *(logs.write(), "--output-dir", output, "--table-per-topic"),
        *("--topic", "users", "--starting-offsets-out", ends),
    )
    assert code == 0
    assert {path.name for path in output.iterdir()} == {"users", "ingest_manifest"}
    assert sum(json.loads(ends.read_text())["users"].values()) == rows(output / "users") == 5


def test_findings_are_named_and_fail_if_that_is_wanted(logs: LogDirectory, tmp_path: Path) -> None:
    given = (logs.write(), "--output-dir", tmp_path / "tables", "--topic", "users")
    assert run(*given)[0] == 0
    logs._topics["users"].records([(b"k", b"v")] * 4, partition=1)
    logs._topics["users"].delete_records(logs._topics["users"].log(1).next_offset, partition=1)
    logs.write()
    code, out, _ = run(*given, "--fail-on-findings")
    assert code == 1
    assert "GAP: users-1: offsets" in out


@pytest.mark.usefixtures("many_tasks")
@pytest.mark.parametrize("processes", [1, 2])
def test_damage_stops_a_run_which_leaves_no_file(
    processes: int, logs: LogDirectory, tmp_path: Path
) -> None:
    logs._topics["users"].flip_byte(1)
    output = tmp_path / "tables"
    given = (logs.write(), "--output-dir", output, "--processes", processes)
    code, out, err = run(*given)
    assert (code, out) == (3, "")
    assert "users-0/00000000000000000000.log: position 0" in err
    assert files(output) == []
    assert run(*given, "--mode", "PERMISSIVE")[0] == 0
    assert 0 < rows(output / "ingested_records") < 35


def test_nothing_is_written_where_logs_are(logs: LogDirectory, tmp_path: Path) -> None:
    path = Path(logs.write())
    for output in (path, path / "orders-0", path / "lake"):
        code, _, err = run(path, "--output-dir", output)
        assert (code, "outside of" in err) == (2, True)
    other = LogDirectory(tmp_path / "other")
    other.topic("orders")
    code, _, err = run(path, "--output-dir", Path(other.write()) / "lake")
    assert code == 3
    assert "is a broker's log directory, nothing is written there" in err
    file = tmp_path / "file"
    file.touch()
    assert run(path, "--output-dir", file)[0] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--output-dir", "a", "--table", "b"), "--table: only with --format iceberg"),
        (("--output-dir", "a", "--catalog", "b"), "--catalog: only with --format iceberg"),
        ((), "--output-dir: missing, expected a directory, or --catalog for Iceberg tables"),
        ((*_ICEBERG, "--output-dir", "a", "--catalog", "b"), "leave it out with --catalog"),
        ((*_ICEBERG, "--catalog", "nowhere"), "a catalog of .pyiceberg.yaml"),
        ((*_ICEBERG, "--output-dir", "a", "--table", "b."), "expected namespace.name"),
        ((*_ICEBERG, "--output-dir", "s3://a/b"), "in an object store need --catalog NAME"),
        ((*_ICEBERG, "--output-dir", "a", "--table", "b", "--table-per-topic"), "cannot be used"),
        (("--output-dir", "a", "--compression-level", "99"), "a level of zstd"),
        (("--output-dir", "a", "--target-file-size", "much"), "is not a size"),
        (("--output-dir", "a", "--full-refresh", "--offsets", "3:"), "cannot be used with"),
        (("--output-dir", "a", "--topic", "orderz"), "did you mean orders? There are orders"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    arguments: tuple[str, ...], said: str, logs: LogDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(logs.write())
    monkeypatch.chdir(path.parent)
    code, _, err = run(path, *arguments)
    assert (code, said in err) == (2, True), err
    assert not (path.parent / "a").exists()


@pytest.fixture
def large_logs(tmp_path: Path) -> str:
    """Two partitions with some MiB that do not compress."""
    made = LogDirectory(tmp_path / "logs")
    topic = made.topic("large", partitions=2)
    values = Random(7)
    for number in range(40):
        topic.records([(None, values.randbytes(500_000))], partition=number % 2)
    return made.write()


def started(*arguments: object, **settings: Any) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "kafkalog", "export", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings
    )


@pytest.mark.parametrize(
    ("table_format", "ending"), [("parquet", "*.pending"), ("iceberg", "*.parquet")]
)
def test_a_run_that_is_stopped_leaves_no_file(
    table_format: str, ending: str, large_logs: str, tmp_path: Path
) -> None:
    output = tmp_path / "tables"
    process = started(
        *(large_logs, "--output-dir", output, "--processes", "2", "--format", table_format),
        *("--compression", "gzip", "--compression-level", "9"),
    )
    deadline = time.monotonic() + 60
    while not [*output.rglob(ending)] and time.monotonic() < deadline:
        time.sleep(0.01)
    process.terminate()
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (143, "")
    # Of Iceberg, the empty table and its catalog.
    assert [each for each in files(output) if "metadata" not in each.parts] == (
        [] if table_format == "parquet" else [output / "catalog.db"]
    )
