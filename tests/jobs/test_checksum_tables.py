"""Tables checksum_report and faults: every byte of every file, and each fault at its place."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafkalog.spark.jobs.job import ExitCode
from tests.support.golden.damaged_variants import FOUND_WITH_INDEXES as FOUND
from tests.support.golden.fixture_sets import dumped_batches, unique_segments
from tests.support.jobs.job_runs import (
    DAMAGED,
    DAMAGED_FAULTS,
    faults_of,
    needs_delta,
    run,
    table,
    written_schema,
)
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import variants_as_partitions

# Kinds that do not count as errors here.
WARNINGS = {"leader_epoch", "segment_hole", "missing_end"}


@pytest.mark.deep
@pytest.mark.parametrize(
    "table_format", ["parquet", "json", pytest.param("delta", marks=needs_delta)]
)
def test_both_tables_are_written_in_every_format(
    table_format: str, spark: SparkSession, tmp_path: Path
) -> None:
    code = run(DAMAGED, output=tmp_path, arguments=f"--format {table_format}")
    assert code == ExitCode.DONE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checksum_report", "faults"]
    for name in ("checksum_report", "faults"):
        if table_format == "json":  # which keeps no schema of its own
            reader = spark.read.schema(written_schema(name))
            frame = reader.json(str(tmp_path / name), mode="FAILFAST")
        else:
            frame = table(spark, tmp_path, name, table_format)
            # Names, types, nullability, order and the comment on every column.
            assert frame.schema == written_schema(name)
        assert frame.where("input_path IS NULL OR cluster_id IS NULL").isEmpty()
        expected = 7 if name == "checksum_report" else len(DAMAGED_FAULTS)
        assert frame.count() == expected
    if table_format != "json":
        assert faults_of(table(spark, tmp_path, "faults", table_format)) == DAMAGED_FAULTS


@pytest.fixture(scope="module")
def checked_variants(
    spark: SparkSession, unpacked: Unpack, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """All hand-damaged copies as topics of one log directory, and the job's tables of them."""
    place = tmp_path_factory.mktemp("checked")
    logs = variants_as_partitions(unpacked("unclean.logs") / "variants", place / "log-dir")
    assert run(logs, output=place / "tables") == ExitCode.DONE
    return logs, place / "tables"


def test_each_hand_made_fault_is_in_table_faults(
    spark: SparkSession, checked_variants: tuple[Path, Path]
) -> None:
    # F62 to F75; T1 to T4, T12, T13, T33.
    frame = table(spark, checked_variants[1], "faults")
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    places = frame.orderBy("topic", "partition", "segment_base_offset", "position")
    for row in places.select("topic", "kind", "position").collect():
        found[row.topic].append((row.kind, row.position))
    assert dict(found) == FOUND


@pytest.mark.deep
def test_the_report_counts_what_the_faults_list(
    spark: SparkSession, checked_variants: tuple[Path, Path]
) -> None:
    report = table(spark, checked_variants[1], "checksum_report")
    counted = Counter(
        (variant, "warning" if kind in WARNINGS else "error")
        for variant, faults in FOUND.items()
        for kind, _ in faults
    )
    # What a broker that stopped leaves at the end of the last segment is information (F69).
    for variant in ("truncated-last-batch", "truncated-in-header", "zeroed-tail-appended"):
        del counted[variant, "error"]
    counted["zeroed-tail-overwritten", "error"] -= 1
    sums = report.groupBy("topic").agg(
        F.sum("faults").alias("faults"), F.sum("warnings").alias("warnings")
    )
    rows = {row.topic: (row.faults, row.warnings) for row in sums.collect()}
    assert rows == {
        variant: (counted[variant, "error"], counted[variant, "warning"]) for variant in rows
    }
    assert rows.keys() >= FOUND.keys()


@pytest.mark.deep
def test_the_first_fault_has_its_position_and_offset(
    spark: SparkSession, checked_variants: tuple[Path, Path]
) -> None:
    report = table(spark, checked_variants[1], "checksum_report").where("faults > 0")
    columns = ("verdict", "first_fault", "first_fault_position", "first_fault_offset")
    rows = {row.topic: tuple(row[name] for name in columns) for row in report.collect()}
    # The batch at 7979 begins with offset 2721, the one at 23728 of the first segment with 191.
    expected = {
        "bitflip-payload-active": ("damaged", "checksum", 7979, 2721),
        "zero-hole": ("damaged", "zeros", 7979, 2721),
        "magic-9": ("damaged", "magic", 7979, 2721),
        "bitflip-payload-first-segment": ("damaged", "checksum", 23728, 191),
    }
    assert {variant: rows[variant] for variant in expected} == expected


@pytest.mark.deep
def test_sound_files_have_the_batches_and_records_that_kafka_dump_log_counted(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F13, F27, F30, F31, F60, F93: internal topics are checked too.
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    assert (
        run(logs / "log-dirs", output=tmp_path, arguments="--format parquet --fail-on-findings")
        == 0
    )
    report = table(spark, tmp_path, "checksum_report")
    columns = ("batches", "records", "bytes", "valid_bytes", "faults", "warnings")
    rows = {row.file: tuple(row[name] for name in columns) for row in report.collect()}
    expected = {}
    for segment in unique_segments(logs):
        lines = dumped_batches(golden, segment) or []
        size = segment.path.stat().st_size
        records = sum(int(line["count"]) for line in lines)
        expected[str(segment.path)] = (len(lines), records, size, size, 0, 0)
    assert rows == expected
    assert table(spark, tmp_path, "faults").where("severity <> 'information'").isEmpty()
    batches, records, size, _ = (
        sum(column) for column in list(zip(*expected.values(), strict=True))[:4]
    )
    partitions = len({path.parent for path in map(Path, expected)})
    assert (
        f"sound: checked {len(expected)} segments of {partitions} partitions, {size:,} bytes, "
        f"{batches:,} batches, {records:,} records\n"
    ) in capsys.readouterr().out
