"""Topics into a table, run after run. Rules: F530 to F535; what a run reads: also in
tests/unit/views/planning/test_ingest_positions.py."""

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafkalog.errors import StatePositionError
from kafkalog.lake.delta.delta_positions import read_positions
from kafkalog.lake.export_plan import ExportPlan, plan_export
from kafkalog.lake.layout import TableLayout
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.spark.jobs.job import ExitCode
from kafkalog.spark.lake.delta_manifest import DeltaManifest
from kafkalog.spark.lake.delta_table import DeltaTarget
from kafkalog.spark.lake.task_files import written_by_tasks
from kafkalog.testing import LogDirectory, ProducerRecord
from kafkalog.views.planning.ingest_positions import IngestPositions
from tests.support.golden.answered_offsets import printed_offsets
from tests.support.jobs.ingest_runs import (
    by_topic,
    ingested,
    manifest,
    options_of,
    printed_ends,
    received,
    run_ingest,
)
from tests.support.jobs.job_runs import needs_delta, written_schema
from tests.support.lake.ingest_requests import EVERY_RECORD
from tests.support.logs.growing_logs import GrowingLog, write_logs
from tests.support.logs.streamed_logs import StreamedLog
from tests.support.messages.avro_orders import ORDERS, PERSON, write_schemas
from tests.support.repository import ROOT, Unpack
from tests.support.spark.kafka_logs import write_records

pytestmark = needs_delta

YEAR_2099_MS = 4_070_908_800_000


def planned(spark: SparkSession, log_dir: Path, output: Path) -> ExportPlan:
    manifest = DeltaManifest(spark, str(output / "ingest_manifest"))
    options = EVERY_RECORD.options(
        [str(log_dir)], "FAILFAST", str(output), now_ms=1_795_000_000_000
    )
    return plan_export(
        options,
        EVERY_RECORD,
        lambda name: DeltaTarget(spark, str(output / name), manifest, TableLayout()),
    )


def test_records_of_erased_persons_are_left_out_and_counted_once(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F1124: a line for each topic, whatever the number of tasks.
    shop, person = ROOT / "examples" / "shop-week", tmp_path / "person.txt"
    person.write_text('c-01\n{"value-path": "$.customer", "value": "c-01"}\n')
    given = "--topic customers --topic orders"
    assert run_ingest(shop, output=tmp_path / "all", arguments=given) == 0
    capsys.readouterr()
    suppress = f"{given} --suppress {person}"
    assert run_ingest(shop, output=tmp_path / "left", arguments=suppress) == 0
    said = capsys.readouterr().err.splitlines()
    is_persons = (F.col("key") == b"c-01") | F.col("value").cast("string").contains('"c-01"')
    rows = spark.read.format("delta").load(str(tmp_path / "all" / "ingested_records"))
    of_topic = rows.filter(is_persons).groupBy("topic").count().orderBy("topic").collect()
    assert [line for line in said if "suppressed" in line] == [
        f"{row['topic']}: {row['count']} records suppressed" for row in of_topic
    ]
    left = spark.read.format("delta").load(str(tmp_path / "left" / "ingested_records"))
    assert (len(of_topic), left.filter(is_persons).count()) == (2, 0)
    assert left.count() == rows.count() - sum(row["count"] for row in of_topic)


def test_tasks_decode_values_by_the_schemas_in_the_input(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F1124, F1262.
    logs, person, output = tmp_path / "logs", tmp_path / "person", tmp_path / "tables"
    write_records(logs, "orders-0", [(b"k", value) for value in ORDERS])
    write_schemas(logs)
    person.write_text(PERSON)
    given = "--topic orders --isolation-level read_uncommitted --fail-on-findings "
    given += f"--suppress {person}"
    assert run_ingest(logs, output=output, arguments=given) == ExitCode.FINDINGS
    assert [row["value"] for row in ingested(spark, output)] == [*ORDERS[1:]]
    said = capsys.readouterr().err
    assert "orders: 1 record suppressed" in said
    assert "orders: 1 value not decoded" in said


def test_run_after_run_the_table_is_what_a_consumer_received(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    # F530, F534, F535
    logs, golden = unpacked("kafka44.logs") / "log-dirs", unpacked("kafka44.golden")
    starts, ends = printed_offsets(golden, -2), printed_ends(golden)
    middle = {name: (starts[name] + end + 1) // 2 for name, end in ends.items()}
    told = tmp_path / "starting_offsets.json"
    assert run_ingest(logs, output=tmp_path, arguments=options_of(None, middle)) == 0
    assert run_ingest(logs, output=tmp_path, arguments=f"--starting-offsets-out {told}") == 0
    assert ingested(spark, tmp_path) == received(golden)
    # Every partition with its end as the broker told its admin client, empty ones too.
    assert json.loads(told.read_text()) == json.loads(by_topic(ends))
    _check_manifest(spark, tmp_path, starts, ends)


@pytest.mark.deep
def test_a_range_once_more_changes_no_other_row(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    # F533
    logs, golden = unpacked("kafka44.logs") / "log-dirs", unpacked("kafka44.golden")
    starts, ends = printed_offsets(golden, -2), printed_ends(golden)
    middle = {name: (starts[name] + end + 1) // 2 for name, end in ends.items()}
    assert run_ingest(logs, output=tmp_path) == 0
    assert run_ingest(logs, output=tmp_path, arguments=options_of(middle, ends)) == 0
    assert ingested(spark, tmp_path) == received(golden)
    assert run_ingest(logs, output=tmp_path) == 0
    history = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path / 'ingested_records'}`").collect()
    assert [row.operation for row in history] == ["WRITE", "WRITE", "CREATE TABLE"]
    frame = spark.read.format("delta").load(str(tmp_path / "ingested_records"))
    runs = {
        (f"{row.topic}-{row.partition}", row.ingest_run): (row.first, row.last)
        for row in frame.groupBy("topic", "partition", "ingest_run")
        .agg(F.min("offset").alias("first"), F.max("offset").alias("last"))
        .collect()
    }
    assert {run for _, run in runs} == {1, 2}
    for (name, run), (first, last) in runs.items():
        assert last < middle[name] if run == 1 else first >= middle[name]


def _check_manifest(
    spark: SparkSession, output: Path, starts: dict[str, int], ends: dict[str, int]
) -> None:
    rows = manifest(spark, output)
    counts = spark.read.format("delta").load(str(output / "ingested_records"))
    assert sum(row["rows"] for row in rows) == counts.count()
    reached: dict[str, int] = {}
    for row in rows:
        name = f"{row['topic']}-{row['partition']}"
        assert row["from_offset"] == reached.get(name, starts[name])
        reached[name] = row["until_offset"]
    assert reached == {name: end for name, end in ends.items() if end > starts[name]}
    for table in ("ingested_records", "ingest_manifest"):
        written = spark.read.format("delta").load(str(output / table)).schema
        assert written == written_schema(table)


@pytest.mark.deep
def test_a_growing_log_is_read_up_to_its_last_stable_offset_each_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = GrowingLog("orders", 0, 5)
    for _ in range(2):
        log.grow(15)
        log.log_start = 0
        write_logs(tmp_path / "log", [log])
        assert run_ingest(tmp_path / "log", output=tmp_path / "out") == ExitCode.DONE
        assert [row["offset"] for row in ingested(spark, tmp_path / "out")] == [
            row["offset"]
            for row in log.rows
            if row["offset"] < log.last_stable_offset and row["offset"] not in log._aborted
        ]


@pytest.mark.deep
def test_gaps_and_topics_created_again_are_findings(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F531, F532
    log_dir, output = tmp_path / "log", tmp_path / "out"
    logs = [StreamedLog(log_dir, topic, 0) for topic in ("gap", "again")]
    for log in logs:
        log.append(2, 3)
        (log.path / "partition.metadata").write_text(
            "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n"
        )
    assert run_ingest(log_dir, output=output, arguments="--fail-on-findings") == ExitCode.DONE
    logs[0].append(1, 3)
    logs[0].roll()
    logs[0].append(1, 2)
    logs[0].delete_up_to(9)
    shutil.rmtree(logs[1].path)
    StreamedLog(log_dir, "again", 0).append(4, 3)
    metadata = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg\n"
    (logs[1].path / "partition.metadata").write_text(metadata)
    told, link = tmp_path / "offsets.json", tmp_path / "link"
    link.symlink_to(told)
    asked = f"--fail-on-findings --starting-offsets-out {link}"
    assert run_ingest(log_dir, output=output, arguments=asked) == ExitCode.FINDINGS
    said = capsys.readouterr().out
    assert "GAP: gap-0: offsets 6 to 8 were deleted before they were read" in said
    assert "RECREATED: again-0: " in said
    offsets = [(row["topic"], row["offset"]) for row in ingested(spark, output)]
    assert offsets == [("again", n) for n in range(6)] + [
        ("gap", offset) for offset in (*range(6), 9, 10)
    ]
    # What a link names is written: replaced would be /dev/null as well.
    assert (link.is_symlink(), told.read_text()) == (True, '{"gap": {"0": 11}}')
    found = [(row["topic"], row["finding"]) for row in manifest(spark, output) if row["finding"]]
    assert found == [("again", "recreated"), ("gap", "gap")]
    # What is there now, in place of what there was.
    assert run_ingest(log_dir, output=output, arguments="--full-refresh") == ExitCode.DONE
    offsets = [(row["topic"], row["offset"]) for row in ingested(spark, output)]
    assert offsets == [("again", n) for n in range(12)] + [("gap", 9), ("gap", 10)]


@pytest.mark.deep
def test_of_two_runs_at_once_one_writes(spark: SparkSession, tmp_path: Path) -> None:
    # F530
    log = StreamedLog(tmp_path / "log", "orders", 0)
    log.append(2, 3)
    assert run_ingest(tmp_path / "log", output=tmp_path / "out") == 0
    log.append(2, 3)
    late = planned(spark, tmp_path / "log", tmp_path / "out")
    assert run_ingest(tmp_path / "log", output=tmp_path / "out") == 0
    files = written_by_tasks(spark, late)
    with pytest.raises(StatePositionError, match="another run has written meanwhile"):
        late.commit(files)
    # Nor is anything left of it that a VACUUM would have to remove.
    table = OutputDirectory(str(tmp_path / "out" / "ingested_records"))
    assert not any(table.exists(file.path) for file in files)
    assert [row["offset"] for row in ingested(spark, tmp_path / "out")] == list(range(12))


def test_days_over_a_record_of_the_future_read_each_record_once(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F930, F932, F934: what `kafkalog status` reads of the Delta table is what Delta has.
    directory, day_ms = LogDirectory(tmp_path / "logs"), 24 * 3_600_000
    topic, begin_ms = directory.topic("orders"), directory.now_ms
    hours = [begin_ms + hour * 3_600_000 for hour in range(48)]
    for time_ms in (*hours[:29], YEAR_2099_MS, *hours[29:]):
        topic.records([ProducerRecord("k", "v", timestamp_ms=time_ms)])
    logs, output = Path(directory.write()), tmp_path / "out"
    days = [f"--until-time {begin_ms + day * day_ms} --fail-on-findings" for day in (1, 2)]
    assert run_ingest(logs, output=output, arguments=days[0]) == ExitCode.DONE
    table = OutputDirectory(str(output / "ingested_records"))
    found = read_positions(table, IngestPositions.from_json)
    assert found.next_offsets == {("orders", 0): 24}
    assert run_ingest(logs, output=output, arguments=days[1]) == ExitCode.FINDINGS
    assert "FUTURE_TIME: orders-0: offset 29: 2099-01-01" in capsys.readouterr().out
    assert [row["offset"] for row in ingested(spark, output)] == [*range(49)]
    assert [row["finding"] for row in manifest(spark, output)] == [None, "future_time"]
    spark.sql(f"RESTORE delta.`{table.path}` TO VERSION AS OF 1")
    assert read_positions(table, IngestPositions.from_json).next_offsets == {("orders", 0): 24}


@pytest.mark.deep
def test_a_restored_table_and_one_without_history_go_on_where_they_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    # F530: decision 14
    log, output = StreamedLog(tmp_path / "log", "orders", 0), tmp_path / "out"
    for _ in range(3):
        log.append(2, 3)
        assert run_ingest(tmp_path / "log", output=output) == 0
    table = output / "ingested_records"
    spark.sql(f"RESTORE delta.`{table}` TO VERSION AS OF 2")
    assert len(ingested(spark, output)) == 12
    assert run_ingest(tmp_path / "log", output=output) == 0
    assert [row["offset"] for row in ingested(spark, output)] == list(range(18))
    # The same rows in a table whose commits say nothing, with the manifest as it was.
    copied = tmp_path / "copied"
    copied.mkdir()
    shutil.copytree(output / "ingest_manifest", copied / "ingest_manifest")
    frame = spark.read.format("delta").load(str(table))
    frame.write.format("delta").save(str(copied / "ingested_records"))
    log.append(2, 3)
    assert run_ingest(tmp_path / "log", output=copied) == 0
    assert [row["offset"] for row in ingested(spark, copied)] == list(range(24))


@pytest.mark.deep
def test_a_log_without_a_commit_of_a_killed_run_is_continued(
    spark: SparkSession, tmp_path: Path
) -> None:
    # F530
    log, output = StreamedLog(tmp_path / "log", "orders", 0), tmp_path / "out"
    log.append(2, 3)
    for table in ("ingested_records", "ingest_manifest"):
        (output / table / "_delta_log").mkdir(parents=True)
    for _ in range(2):
        assert run_ingest(tmp_path / "log", output=output) == 0
        assert [row["offset"] for row in ingested(spark, output)] == list(range(6))
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{output / 'ingested_records'}`").first()
    assert detail is not None
    assert detail.clusteringColumns == ["topic", "partition", "offset"]
