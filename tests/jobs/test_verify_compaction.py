"""The job that checks cleaned logs: its tables, what it says, its exit codes."""

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.verify_compaction import main
from kafkalog.format.record_batch import write_batch
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import table, written_schema
from tests.support.logs.log_dirs import add_meta_properties
from tests.support.logs.samples import record
from tests.support.repository import EXAMPLES
from tests.support.spark.kafka_logs import write_log


def add_users(place: Path, *keys: bytes, checkpoint: int) -> Path:
    """users-0 with a record of each key and an empty active segment; orders-0 is not compacted."""
    add_meta_properties(place)
    batches = [write_batch([record(offset, key=key)]) for offset, key in enumerate(keys)]
    write_log(place, "users-0", {0: batches, len(keys): []})
    write_log(place, "orders-0", {0: batches})
    (place / "cleaner-offset-checkpoint").write_text(f"0\n1\nusers 0 {checkpoint}\n")
    return place


def run(log_dir: Path, *arguments: object) -> int:
    given = ["--output-dir", log_dir.parent / "tables", "--format", "parquet", *arguments]
    return main([str(log_dir), *map(str, given)])


def test_a_duplicate_is_a_row_and_an_exit_code(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F255.
    log_dir = add_users(tmp_path / "logs", b"a", b"a", b"b", checkpoint=2)
    assert run(log_dir, "--fail-on-findings", "--as-of", 5) == ExitCode.FINDINGS
    said = capsys.readouterr().out
    assert "1 compacted partition; BROKEN: 1 error, 0 warnings in 1 partition;" in said
    report = table(spark, tmp_path / "tables", "compaction_report")
    findings = table(spark, tmp_path / "tables", "compaction_findings")
    assert report.schema == written_schema("compaction_report")
    assert findings.schema == written_schema("compaction_findings")
    (row,) = report.collect()
    assert (row.topic, row.errors, row.at_ms, row.cleanup_policy) == ("users", 1, 5, None)
    (finding,) = findings.collect()
    assert (finding.kind, finding.severity, finding.offset, finding.other_offset) == (
        "duplicate_key",
        "error",
        0,
        1,
    )
    assert (finding.cluster_id, finding.input_path) == ("cluster", str(log_dir))


@pytest.mark.deep
def test_what_a_cleaning_would_free_by_the_topics_own_settings(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F241, F254.
    log_dir = add_users(tmp_path / "logs", b"a", b"b", b"c", b"a", checkpoint=3)
    size = len(write_batch([record(0, key=b"a")]))
    configs = tmp_path / "topics.json"
    settings = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.6",
        "min.compaction.lag.ms": "0",
        "max.compaction.lag.ms": "9223372036854775807",
    }
    configs.write_text(json.dumps({"users": settings}))
    assert run(log_dir, "--topic-config", configs, "--fail-on-findings") == ExitCode.DONE
    said = capsys.readouterr().out
    assert "3 cleaned records as the cleaner promises;" in said
    (shown,) = (line for line in said.splitlines() if line.startswith("|users"))
    assert "|false " in shown and "min.cleanable.dirty.ratio" in shown
    assert f"a cleaning would free {size} bytes, 0 partitions due" in said
    (row,) = table(spark, tmp_path / "tables", "compaction_report").collect()
    # The first dirty offset lies inside the one segment there is: it counts on both sides.
    assert (row.dirty_ratio, row.is_due, row.freeable_bytes) == (0.5, False, size)
    assert (row.cleanup_policy, row.cleanup_policy_from) == ("compact", "topic")


@pytest.mark.deep
def test_keys_that_were_lost_since_an_earlier_copy(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F259.
    before = add_users(tmp_path / "before" / "logs", b"a", b"b", checkpoint=0)
    log_dir = add_users(tmp_path / "logs", b"a", b"c", checkpoint=1)
    given = (log_dir, "--fail-on-findings", "--before", before)
    assert run(*given) == ExitCode.FINDINGS
    said = capsys.readouterr().out
    assert "lost_key" in said
    assert "; 1 partition compared with the earlier copy\n" in said
    rows = table(spark, tmp_path / "tables", "compaction_findings").orderBy("kind").collect()
    assert [(row.kind, bytes(row.key), row.offset) for row in rows] == [
        ("lost_key", b"b", 1),
        ("unknown_record", b"c", 1),
    ]
    assert run(log_dir, "--before", tmp_path / "nowhere") == ExitCode.UNREADABLE_INPUT
    other = tmp_path / "before" / "orders"
    shutil.copytree(before / "orders-0", other / "orders-0")
    assert run(log_dir, "--before", other) == ExitCode.DONE
    assert "; 0 partitions compared with the earlier copy\n" in capsys.readouterr().out
    shutil.rmtree(other)
    (before / "meta.properties").write_text("version=1\ncluster.id=cluster\nnode.id=2\n")
    shutil.copytree(before, tmp_path / "before" / "other")
    (tmp_path / "before" / "other" / "meta.properties").write_text(
        "version=1\ncluster.id=cluster\nnode.id=3\n"
    )
    assert run(log_dir, "--before", tmp_path / "before" / "*") == ExitCode.WRONG_ARGUMENTS
    assert "one copy of each partition" in capsys.readouterr().err
    (before / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=1\n")
    assert run(log_dir, "--before", before) == ExitCode.WRONG_ARGUMENTS
    assert (
        "of cluster other' is not valid, expected logs of cluster cluster"
        in capsys.readouterr().err
    )


@pytest.mark.deep
def test_cleaned_logs_of_a_real_broker(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F255 to F258.
    given = ["--output-dir", str(tmp_path), "--format", "parquet", "--fail-on-findings"]
    assert main([str(EXAMPLES / "kafka-4.4"), *given]) == ExitCode.DONE
    assert "60 cleaned records as the cleaner promises" in capsys.readouterr().out
