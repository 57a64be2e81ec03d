"""Delta tables whose files tasks write: layouts, statistics, failures, and what is left to vacuum.

Reasons: docs/decisions/0027."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import Row, SparkSession

import kafkalog
from jobs.ingest_topics import main
from kafkalog.errors import OptionError, StatePositionError
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from kafkalog.lake.layout import TableLayout, TableOutput
from kafkalog.lake.table_writer import TableWriter
from kafkalog.lake.written_file import WrittenFile
from kafkalog.spark import delta_commit
from kafkalog.spark.delta_commit import append_files, files_of
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.ingest_runs import ingested, manifest, run_ingest
from tests.support.jobs.job_runs import needs_delta, written_schema
from tests.support.lake.iceberg_tables import configure_catalog
from tests.support.logs.streamed_logs import StreamedLog

pytestmark = [pytest.mark.spark, needs_delta]

_UPGRADE = (
    "delta-spark's transaction is not what kafkalog/spark/delta_commit.py expects: see "
    "docs/decisions/0027"
)


def _detail(spark: SparkSession, table: Path) -> Row:
    (row,) = spark.sql(f"DESCRIBE DETAIL delta.`{table}`").collect()
    return row


def _history(spark: SparkSession, table: Path) -> list[Row]:
    return spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()


def _files(table: Path) -> set[str]:
    return {str(path.relative_to(table)) for path in table.rglob("*.parquet")} - {
        str(path.relative_to(table)) for path in (table / "_delta_log").rglob("*.parquet")
    }


def _written(spark: SparkSession, table: Path, number: int) -> WrittenFile:
    """A file with one row of column `number`, in a table that is created if it is not there."""
    spark.sql(f"CREATE TABLE IF NOT EXISTS delta.`{table}` (number BIGINT) USING delta")
    writer = TableWriter(TableOutput(str(table), 1, TableLayout()))
    writer.write(pa.record_batch({"number": pa.array([number], pa.int64())}), ("orders", 0))
    (file,) = writer.close()
    return file


def test_files_are_listed_alike_with_a_checksum_file_and_without(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table"
    files = [_written(spark, table, number) for number in (1, 2)]
    append_files(spark, str(table), files, writer="a test", version=1)
    listed = files_of(spark, str(table))
    assert {file.path for file in listed} == {file.path for file in files}, _UPGRADE
    assert {file.least["number"] for file in listed} == {1, 2}
    # As the log has them, in a Spark job.
    monkeypatch.setattr(delta_commit, "_in_checksum", lambda snapshot, name: None)
    again = files_of(spark, str(table))
    assert sorted(again, key=repr) == sorted(listed, key=repr)


def test_a_commit_by_deltas_own_transaction(spark: SparkSession, tmp_path: Path) -> None:
    # Fails where another version of Delta has other classes.
    table = tmp_path / "table"
    given: dict[str, Any] = {"writer": "a test", "user_metadata": '{"job": "a test"}'}
    files = [_written(spark, table, number) for number in (1, 2, 2)]
    try:
        append_files(spark, str(table), files[:2], version=1, **given)
    except (AttributeError, TypeError) as error:
        pytest.fail(f"{_UPGRADE}: {error}")
    newest = _history(spark, table)[0]
    assert (newest.operation, newest.userMetadata) == ("WRITE", given["user_metadata"]), _UPGRADE
    # The same number again, and one that has been passed: both are refused.
    for version in (1, 0):
        with pytest.raises(StatePositionError, match="another run has written meanwhile"):
            append_files(spark, str(table), files[2:], version=version, **given)
    frame = spark.read.format("delta").load(str(table))
    assert sorted(row.number for row in frame.collect()) == [1, 2]
    # Readers skip a file by its statistics: what is not there is not missed.
    (table / files[1].path).unlink()
    assert [row.number for row in frame.where("number < 2").collect()] == [1]


def _jobs(spark: SparkSession) -> int:
    """How many jobs the session has run."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def test_an_export_takes_one_spark_job_which_reads(spark: SparkSession, tmp_path: Path) -> None:
    log, output = StreamedLog(tmp_path / "log", "orders", 0), tmp_path / "out"
    for _ in range(2):
        log.append(2, 3)
        before = _jobs(spark)
        kafkalog.export(spark, tmp_path / "log", str(output))
        assert _jobs(spark) == before + 1
    before = _jobs(spark)
    assert kafkalog.export(spark, tmp_path / "log", str(output)) == []
    assert _jobs(spark) == before
    assert [(row["ingest_run"], row["rows"]) for row in manifest(spark, output)] == [(1, 6), (2, 6)]
    # A reader finds rows of the manifest by the statistics that its commits have.
    rows = spark.read.format("delta").load(str(output / "ingest_manifest"))
    assert rows.where("written_at > '2020-01-01' AND ingest_run = 2").count() == 1
    assert rows.where("written_at < '2020-01-01'").count() == 0


@pytest.mark.deep
@pytest.mark.parametrize(
    "left", ["no checksum files", "no run in its log", "other names of columns"]
)
def test_manifests_of_other_writers_have_each_run_once(
    left: str, spark: SparkSession, tmp_path: Path
) -> None:
    # F530, F535
    log, output = StreamedLog(tmp_path / "log", "orders", 0), tmp_path / "out"
    path = output / "ingest_manifest"
    for _ in range(3):
        log.append(2, 3)
        for _ in range(2):
            assert run_ingest(tmp_path / "log", output=output) == ExitCode.DONE
        if left == "no checksum files":
            for file in output.glob("*/_delta_log/*.crc"):
                file.unlink()
        elif left == "no run in its log":
            frame = spark.read.format("delta").load(str(path))
            frame.write.format("delta").save(str(tmp_path / "copy"))
            shutil.rmtree(path)
            shutil.move(tmp_path / "copy", path)
        else:
            mapping = "'delta.columnMapping.mode' = 'name'"
            spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({mapping})")
    rows = [(row["ingest_run"], row["from_offset"]) for row in manifest(spark, output)]
    assert rows == [(1, 0), (2, 6), (3, 12)]
    # A table that is created again begins with run 1 again.
    shutil.rmtree(output / "ingested_records")
    assert run_ingest(tmp_path / "log", output=output) == ExitCode.DONE
    rows = [(row["ingest_run"], row["from_offset"]) for row in manifest(spark, output)]
    assert len(ingested(spark, output)) == 18
    assert rows[:1] == [(1, 0)]
    assert [run for run, _ in rows] == [1, 2, 3]


@pytest.mark.deep
def test_tables_are_partitioned_as_asked_and_keep_it(spark: SparkSession, tmp_path: Path) -> None:
    log, output = StreamedLog(tmp_path / "log", "orders", 0), tmp_path / "out"
    log.append(2, 3)
    layout = "--partition-by topic --partition-by hour"
    assert run_ingest(tmp_path / "log", output=output, arguments=layout) == ExitCode.DONE
    log.append(2, 3)
    # The second run takes it from the table; rows that are replaced pass through Spark's writer.
    assert run_ingest(tmp_path / "log", output=output) == ExitCode.DONE
    again = "--offsets orders-0=8:10"
    assert run_ingest(tmp_path / "log", output=output, arguments=again) == ExitCode.DONE
    table = output / "ingested_records"
    detail = _detail(spark, table)
    assert (detail.partitionColumns, detail.clusteringColumns) == (["topic", "hour"], [])
    frame = spark.read.format("delta").load(str(table))
    hour = "date_format(timestamp, 'yyyy-MM-dd-HH')"
    assert frame.where(f"NOT hour <=> {hour}").isEmpty()
    assert [row["offset"] for row in ingested(spark, output)] == list(range(12))
    assert {name.split("/")[0] for name in _files(table)} == {"topic=orders"}
    # Comments are those of the schema.
    assert [frame.schema[each.name] for each in written_schema("ingested_records")] == list(
        written_schema("ingested_records")
    )
    assert [row["rows"] for row in manifest(spark, output)] == [6, 6, 2]
    other = "--partition-by day"
    log.append(1, 1)
    code = run_ingest(tmp_path / "log", output=output, arguments=other)
    assert code == ExitCode.WRONG_ARGUMENTS


@pytest.mark.deep
def test_a_table_per_topic_and_one_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    # F536
    logs = [StreamedLog(tmp_path / "log", topic, 0) for topic in ("orders", "page-views")]
    for _ in range(2):
        for log in logs:
            log.append(2, 3)
        output = tmp_path / "out"
        assert run_ingest(tmp_path / "log", output=output, arguments="--table-per-topic") == 0
        named = "--table spark_catalog.default.records_of_a_test"
        assert run_ingest(tmp_path / "log", output=tmp_path / "named", arguments=named) == 0
    for table, topic in (("orders", "orders"), ("page_views", "page-views")):
        rows = spark.read.format("delta").load(str(output / table)).collect()
        assert {row.topic for row in rows} == {topic}
        assert sorted(row.offset for row in rows) == list(range(12))
    assert [(row["topic"], row["rows"]) for row in manifest(spark, output)] == [
        ("orders", 6),
        ("orders", 6),
        ("page-views", 6),
        ("page-views", 6),
    ]
    rows = spark.table("spark_catalog.default.records_of_a_test").collect()
    spark.sql("DROP TABLE spark_catalog.default.records_of_a_test")
    assert len(rows) == 24
    assert rows[0].asDict().keys() == {each.name for each in written_schema("ingested_records")}
    assert [row["rows"] for row in manifest(spark, tmp_path / "named")] == [6] * 4


@pytest.mark.deep
def test_a_run_that_fails_leaves_the_table_as_it_was(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = [StreamedLog(tmp_path / "log", topic, 0) for topic in ("a", "b")]
    output, table = tmp_path / "out", tmp_path / "out" / "ingested_records"
    layout = "--partition-by topic"
    for log in logs:
        log.append(2, 3)
    assert run_ingest(tmp_path / "log", output=output, arguments=f"{layout} --topic a") == 0
    before, versions = _files(table), len(_history(spark, table))
    # Nothing can be written there: the files of the other topic are removed again.
    (table / "topic=b").write_text("not a directory")
    logs[0].append(2, 3)
    assert run_ingest(tmp_path / "log", output=output) == ExitCode.UNREADABLE_INPUT
    assert str(table / "topic=b") in capsys.readouterr().err
    assert (_files(table), len(_history(spark, table))) == (before, versions)
    (table / "topic=b").unlink()
    assert run_ingest(tmp_path / "log", output=output) == ExitCode.DONE
    assert len(ingested(spark, output)) == 18


@pytest.mark.deep
def test_vacuum_removes_what_no_commit_names_and_optimize_joins_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, output = StreamedLog(tmp_path / "log", "orders", 0), tmp_path / "out"
    for _ in range(3):
        log.append(2, 3)
        assert run_ingest(tmp_path / "log", output=output) == ExitCode.DONE
    table = output / "ingested_records"
    left = "6f1c.parquet"
    shutil.copyfile(next(table.glob("*.parquet")), table / left)
    spark.sql(f"OPTIMIZE delta.`{table}`")
    assert _detail(spark, table).numFiles == 1
    settings = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        # How many tasks VACUUM starts, however few files there are: 10,000 take minutes.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert left not in _files(table)
    assert len(_files(table)) == 1
    log.append(2, 3)
    assert run_ingest(tmp_path / "log", output=output) == ExitCode.DONE
    assert [row["offset"] for row in ingested(spark, output)] == list(range(24))


def test_topics_are_exported_from_python(spark: SparkSession, tmp_path: Path) -> None:
    logs = [StreamedLog(tmp_path / "log", topic, 0) for topic in ("orders", "other")]
    for log in logs:
        log.append(2, 3)
    given: dict[str, Any] = {"topics": "orders", "partition_by": ["day"]}
    output = tmp_path / "out"
    with pytest.raises(OptionError, match="no such argument: did you mean partition_by"):
        kafkalog.export(spark, tmp_path / "log", str(output), partition="day")
    rows = kafkalog.export(spark, tmp_path / "log", str(output), **given)
    assert rows == [("orders", 1, 6, 6, 0)]
    assert [row["offset"] for row in ingested(spark, output)] == list(range(6))
    assert _detail(spark, output / "ingested_records").partitionColumns == ["day"]
    # Nothing is new.
    assert kafkalog.export(spark, tmp_path / "log", str(output), **given) == []


def test_tables_are_directories_of_parquet_too(spark: SparkSession, tmp_path: Path) -> None:
    log, output = StreamedLog(tmp_path / "log", "orders", 0), tmp_path / "out"
    for _ in range(2):
        log.append(2, 3)
        assert run_ingest(tmp_path / "log", output=output, arguments="--format parquet") == 0
    frame = spark.read.parquet(str(output / "ingested_records"))
    assert sorted(row.offset for row in frame.collect()) == list(range(12))
    rows = spark.read.parquet(str(output / "ingest_manifest")).orderBy("ingest_run").collect()
    assert [(row.ingest_run, row.rows) for row in rows] == [(1, 6), (2, 6)]


@pytest.mark.deep
def test_tables_are_icebergs_too(spark: SparkSession, tmp_path: Path) -> None:
    log, output = StreamedLog(tmp_path / "log", "orders", 0), tmp_path / "out"
    for _ in range(2):
        log.append(2, 3)
        assert run_ingest(tmp_path / "log", output=output, arguments="--format iceberg") == 0
    table = IcebergTable(output_dir=str(output)).load()
    assert table is not None
    assert sorted(table.scan().to_arrow()["offset"].to_pylist()) == list(range(12))
    assert len(table.history()) == 2


@pytest.mark.deep
def test_icebergs_tables_can_be_in_a_catalog(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_catalog(monkeypatch, tmp_path)
    log = StreamedLog(tmp_path / "log", "orders", 0)
    named = ["--format", "iceberg", "--catalog", "lake", "--table", "raw.records"]
    log.append(2, 3)
    assert main([str(tmp_path / "log"), *named]) == ExitCode.DONE
    assert capsys.readouterr().out.splitlines()[-1] == "tables: raw.records"
    log.append(2, 3)
    given: dict[str, Any] = {"format": "iceberg", "catalog": "lake", "table": "raw.records"}
    assert kafkalog.export(spark, tmp_path / "log", **given) == [("orders", 1, 6, 6, 0)]
    with load_catalog("lake") as lake:
        rows = lake.load_table("raw.records").scan().to_arrow()
    assert sorted(rows["offset"].to_pylist()) == list(range(12))
    assert main([str(tmp_path / "log"), "--catalog", "lake"]) == ExitCode.WRONG_ARGUMENTS
    assert "--catalog: only with --format iceberg" in capsys.readouterr().err
