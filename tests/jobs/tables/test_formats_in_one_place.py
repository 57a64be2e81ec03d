"""A run never writes one format's files into a table of another, nor tables into a table.
Rule: F938; without Spark: tests/unit/lake/test_found_tables.py."""

from pathlib import Path

import pytest

from jobs.reconstruct_state import main as reconstruct_state
from kafkalog.exit_codes import ExitCode
from tests.support.jobs.ingest_runs import run_ingest
from tests.support.jobs.job_runs import DAMAGED, needs_delta, run
from tests.support.spark.kafka_logs import write_records

pytestmark = [pytest.mark.spark, needs_delta]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_records(tmp_path_factory.mktemp("logs"), "orders-0", [(b"a", b"1")])


def _ingested(logs: Path, output: Path, table_format: str) -> int:
    arguments = f"--isolation-level read_uncommitted --format {table_format}"
    return run_ingest(logs, output=output, arguments=arguments)


def _files(path: Path) -> set[str]:
    return {str(each.relative_to(path)) for each in path.rglob("*")}


@pytest.mark.parametrize(
    "first",
    [
        "delta",
        pytest.param("iceberg", marks=pytest.mark.deep),
        pytest.param("parquet", marks=pytest.mark.deep),
    ],
)
def test_records_stay_in_one_format(
    first: str, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _ingested(logs, tmp_path, first) == ExitCode.DONE
    before = _files(tmp_path)
    capsys.readouterr()
    for other in {"delta", "iceberg", "parquet"} - {first}:
        assert _ingested(logs, tmp_path, other) == ExitCode.WRONG_ARGUMENTS
        *_, line = capsys.readouterr().err.splitlines()
        assert f"is a table in format {first}, and this run writes {other}: give --format" in line
    table = tmp_path / ("kafkalog/ingested_records" if first == "iceberg" else "ingested_records")
    for inside in (table, table / "topic=orders"):
        assert _ingested(logs, inside, first) == ExitCode.WRONG_ARGUMENTS
        *_, line = capsys.readouterr().err.splitlines()
        assert f"expected a directory of tables, such as {table.parent}: {table} is a table" in line
    assert _files(tmp_path) == before


@pytest.mark.deep
@pytest.mark.parametrize(
    ("first", "others"),
    [
        ("delta", ("parquet", "json")),
        ("parquet", ("delta", "json")),
        ("json", ("delta", "parquet")),
    ],
)
def test_results_of_jobs_stay_in_one_format(
    first: str,
    others: tuple[str, ...],
    logs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    state = [str(logs), "--output-dir", str(tmp_path), "--isolation-level", "read_uncommitted"]
    assert run(DAMAGED, output=tmp_path, arguments=f"--format {first}") == ExitCode.DONE
    assert reconstruct_state([*state, "--format", first]) == ExitCode.DONE
    before = _files(tmp_path)
    for other in others:
        assert (
            run(DAMAGED, output=tmp_path, arguments=f"--format {other}") == ExitCode.WRONG_ARGUMENTS
        )
        assert reconstruct_state([*state, "--format", other]) == ExitCode.WRONG_ARGUMENTS
        *_, line = capsys.readouterr().err.splitlines()
        assert f"is a table in format {first}, and this run writes {other}" in line
    assert _files(tmp_path) == before
    inside = tmp_path / "state"
    assert run(DAMAGED, output=inside, arguments=f"--format {first}") == ExitCode.WRONG_ARGUMENTS
