"""`kafkalog.consumer_lag` and `kafkalog.lag_history` have the rows of the tables. Rules: F310 to
F317, F330 to F337."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kafkalog
from kafkalog.errors import LogDirError, OptionError
from kafkalog.testing import LogDirectory
from tests.support.jobs.job_runs import written_schema
from tests.support.logs.commit_logs import SampleCommit, write_commits, write_topic
from tests.support.logs.log_dirs import add_meta_properties

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record every second of a minute; one group commits twice, another once."""
    place = tmp_path_factory.mktemp("frames") / "logs"
    add_meta_properties(place)
    write_topic(place, "orders", [NOON_MS + 1000 * second for second in range(60)])
    commits = [("reader", 10), ("reader", 40), ("other", 60)]
    write_commits(
        place,
        [
            SampleCommit(group, "orders", NOON_MS + 1000 * offset, offset)
            for group, offset in commits
        ],
    )
    return place


def test_consumer_lag_now_and_at_a_past_time(spark: SparkSession, log_dir: Path) -> None:
    now = kafkalog.consumer_lag(spark, log_dir)
    assert now.schema == written_schema("consumer_lag")
    assert {(row.group_id, row.lag) for row in now.collect()} == {("reader", 20), ("other", 0)}
    past = kafkalog.consumer_lag(
        spark, str(log_dir), groups="reader", as_of=NOON.replace(second=30)
    )
    (row,) = past.collect()
    assert (row.committed_offset, row.lag, row.time_lag_ms) == (10, 21, 20_000)


def test_the_history_of_lag(spark: SparkSession, log_dir: Path) -> None:
    history = kafkalog.lag_history(
        spark, [log_dir], topics=["orders"], until_time=NOON.replace(minute=1)
    )
    assert history.schema == written_schema("lag_history")
    rows = history.where("event = 'commit'").collect()
    assert {(row.group_id, row.committed_offset, row.readable_records) for row in rows} == {
        *(("reader", 10, 1), ("reader", 40, 1), ("other", 60, 0))
    }


def test_consumers_that_read_committed_records_do_not_read_open_transactions(
    spark: SparkSession, tmp_path: Path
) -> None:
    directory = LogDirectory(tmp_path / "logs")
    directory.topic("orders").records([("a", "1")] * 3)
    producer = directory.transactional_producer("shop")
    producer.records(directory.topic("paid"), [("a", "1")] * 2)
    directory.commit_offsets("reader", {("paid", 0): 0})
    place = directory.write()
    for rows in (kafkalog.consumer_lag, kafkalog.lag_history):
        readable = {
            level: rows(spark, place, isolation_level=level).collect()[0].readable_records
            for level in ("read_uncommitted", "read_committed")
        }
        assert readable == {"read_uncommitted": 2, "read_committed": 0}
        with pytest.raises(OptionError, match="did you mean read_committed"):
            rows(spark, place, isolation_level="read_comitted")


def test_a_group_without_rows_is_named(
    spark: SparkSession, log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F1292
    said = "no rows of group raeder; in the input: did you mean reader? There are other, reader"
    for rows in (kafkalog.consumer_lag, kafkalog.lag_history):
        caplog.clear()
        assert rows(spark, log_dir, groups=["reader", "raeder"]).count() > 0
        assert [each for each in caplog.messages if "no rows" in each] == [said]


def test_paths_without_commits_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    add_meta_properties(tmp_path / "logs")
    write_topic(tmp_path / "logs", "orders", [NOON_MS])
    with pytest.raises(LogDirError, match="__consumer_offsets"):
        kafkalog.consumer_lag(spark, tmp_path / "logs")
