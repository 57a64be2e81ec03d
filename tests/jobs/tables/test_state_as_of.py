"""The state of an earlier moment, against a replay that ends there. Rules: F273, F274, F275."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.spark.jobs.job import ExitCode
from kafkalog.testing import LogDirectory, ProducerRecord
from tests.support.golden.fixture_sets import consumed
from tests.support.jobs.state_runs import State, replayed, run_state, state_in
from tests.support.logs.samples import batch
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import write_log

AS_ASKED = "--format parquet --isolation-level read_uncommitted --topic"


def state_before(golden: Path, topic: str, ends: dict[int, int]) -> State:
    rows = consumed(golden, topic, "read_uncommitted")
    return replayed(topic, [row for row in rows if row["offset"] < ends[row["partition"]]])


def first_late_offsets(golden: Path, topic: str, time_ms: int) -> dict[int, int]:
    """By partition the first offset of a record as late; above all where there is none."""
    ends: dict[int, int] = {}
    for row in consumed(golden, topic, "read_uncommitted"):
        late = row["offset"] if row["timestamp"] >= time_ms else 2**62
        ends[row["partition"]] = min(late, ends.get(row["partition"], 2**62))
    return ends


def test_state_at_offsets(spark: SparkSession, unpacked: Unpack, tmp_path: Path) -> None:
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    topic = "shop.multi-3-part-0"
    ends = {0: 700, 1: 0, 2: 1300}
    offsets = [f"--as-of-offset {topic}-{partition}={end}" for partition, end in ends.items()]
    arguments = " ".join([AS_ASKED, topic, *offsets])
    assert run_state(logs / "log-dirs", output=tmp_path, arguments=arguments) == ExitCode.DONE
    assert state_in(spark, tmp_path) == state_before(golden, topic, ends)


@pytest.mark.deep
@pytest.mark.parametrize("nth", [0, 400, 900])
def test_state_at_a_time(nth: int, spark: SparkSession, unpacked: Unpack, tmp_path: Path) -> None:
    # The times of this topic fall and rise by years: with so large a --max-future none is doubtful.
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    topic = "shop.codec-zstd"
    time_ms = consumed(golden, topic, "read_uncommitted")[nth]["timestamp"]
    ends = first_late_offsets(golden, topic, time_ms)
    arguments = f"{AS_ASKED} {topic} --as-of {time_ms} --max-future 99999d"
    assert run_state(logs / "log-dirs", output=tmp_path, arguments=arguments) == ExitCode.DONE
    assert state_in(spark, tmp_path) == state_before(golden, topic, ends)


def test_a_record_of_the_future_does_not_end_the_state_at_a_time(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F273, F930
    directory = LogDirectory(tmp_path / "logs")
    topic, begin_ms = directory.topic("orders"), directory.now_ms
    for number in range(6):
        time_ms = 4_070_908_800_000 if number == 1 else begin_ms + number * 1000
        topic.records([ProducerRecord(str(number), "v", timestamp_ms=time_ms)])
    arguments = f"{AS_ASKED} orders --as-of {begin_ms + 4000} --fail-on-findings"
    code = run_state(Path(directory.write()), output=tmp_path / "tables", arguments=arguments)
    assert code == ExitCode.FINDINGS
    assert "FUTURE TIME: orders-0: offset 1: 2099-01-01T00:00:00.000Z" in capsys.readouterr().out
    (row,) = spark.read.parquet(str(tmp_path / "tables" / "state_partitions")).collect()
    assert row.next_offset == 4


@pytest.mark.deep
@pytest.mark.parametrize(("offset", "is_exact"), [(2, False), (3, True), (5, True)])
def test_a_state_before_the_cleaners_checkpoint_is_told_apart(
    offset: int,
    is_exact: bool,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs = tmp_path / "logs"
    write_log(logs, "orders-0", {0: [batch(0), batch(3)]})
    (logs / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    arguments = f"{AS_ASKED} orders --as-of-offset {offset} --fail-on-findings"
    code = run_state(logs, output=tmp_path / "tables", arguments=arguments)
    assert code == (ExitCode.DONE if is_exact else ExitCode.FINDINGS)
    told = f"NOT EXACT: orders-0 at offset {offset}: "
    said = capsys.readouterr().out
    assert (told in said) is not is_exact
    # F1353
    assert ("may be missing in 1 of 1 partition; " in said) is not is_exact
    (row,) = spark.read.parquet(str(tmp_path / "tables" / "state_partitions")).collect()
    assert (row.next_offset, row.cleaner_checkpoint, row.exact_from_offset, row.is_exact) == (
        offset, 3, 3, is_exact,
    )  # fmt: skip


@pytest.mark.parametrize("table_format", ["parquet", pytest.param("json", marks=pytest.mark.deep)])
def test_of_several_copies_the_one_that_was_cleaned_least_is_read(
    table_format: str,
    spark: SparkSession,
    unpacked: Unpack,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # F1294: node 2 was copied after node 1, and cleaned more. JSON is written by Spark's writer.
    nodes = sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))
    asked = f"--format {table_format} --topic state --as-of 2026-11-25T19:48:41Z"
    for name, given in (("all", nodes), ("first", nodes[:1])):
        assert run_state(*given, output=tmp_path / name, arguments=asked) == ExitCode.DONE
    assert f"read from the copies in {nodes[0]}" in capsys.readouterr().out
    first = state_in(spark, tmp_path / "first", table_format)
    assert len(first) == 55
    assert state_in(spark, tmp_path / "all", table_format) == first
