"""The job that audits old consumers: its tables, what it says, its exit codes. Rules: F448, F449,
F457, F466, F468, F469."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.audit_consumers import main
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import table, written_schema
from tests.support.logs.log_dirs import add_meta_properties
from tests.support.logs.samples import batch
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import write_log
from tests.support.zookeeper.clusters import consumer, topic
from tests.support.zookeeper.ensembles import CTIME_MS, MTIME_MS, SESSION, write_ensemble

TABLES = ("partition_ownership", "consumer_findings", "ownership_history")
G = "/kafka/consumers/g"
TREE = {
    "/kafka/cluster/id": '{"version":"1","id":"cluster"}',
    "/kafka/brokers/topics/t": topic(3),
    "/kafka/brokers/topics/Topic": topic(1),
    "/kafka/admin/delete_topics/Topic": None,
    f"{G}/ids/a": consumer("t"),
    f"{G}/ids/b": consumer("t"),
    f"{G}/owners/t/0": "b-0",
    f"{G}/owners/t/1": "a-0",
    f"{G}/offsets/t/0": "1000",
    f"{G}/offsets/t/1": "none",
    f"{G}/offsets/t/2": "0",
    # Another cluster in the same ensemble, with a topic of the same name.
    "/other/cluster/id": '{"version":"1","id":"second"}',
    "/other/brokers/topics/t": topic(1),
    "/other/consumers/h/offsets/t/0": "1000",
}


def run(output: Path, *arguments: object) -> int:
    return main([*map(str, arguments), "--output-dir", str(output), "--format", "parquet"])


def test_live_groups_of_a_real_ensemble(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unpacked("kafka010.zookeeper") / "zookeeper-live"
    assert run(tmp_path, folder, "--fail-on-findings") == ExitCode.FINDINGS
    said = capsys.readouterr().out.splitlines()
    # Three live groups: 1, 4 and 4 partitions; the fourth has left and its offset stays.
    head = "4 groups, 10 partitions: 9 owned, 9 assigned; 15 claims in the history"
    assert head in said
    assert "group_without_members: 1, old.g-old-gone 1 offset and no consumer" in said
    for name in TABLES:
        assert table(spark, tmp_path, name).schema == written_schema(name)
    owned = table(spark, tmp_path, "partition_ownership")
    owner = owned.where("owner = assigned AND strategy LIKE 'range%'")
    assert owner.count() == 9 and owned.where("size(findings) > 0").count() == 0
    history = table(spark, tmp_path, "ownership_history")
    waited = history.where("release IS NULL AND unowned_ms IS NOT NULL")
    assert {row.claim_cause for row in waited.collect()} == {"member_joined"}
    assert waited.count() == 4


@pytest.mark.deep
def test_a_made_cluster_with_all_that_logs_tell(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = write_ensemble(tmp_path / "one", TREE, zxid=0x200)
    stale = {**TREE, f"{G}/owners/t/2": "b-0"}
    older = write_ensemble(tmp_path / "two", stale, zxid=0x100)
    own, other = tmp_path / "own", tmp_path / "other"
    add_meta_properties(own)
    add_meta_properties(other, cluster_id="another")
    write_log(own, "t-0", {0: [batch(0)]})
    write_log(own, "Topic-x-0", {0: [batch(0)]})
    write_log(other, "u-0", {0: [batch(0)]})
    output = tmp_path / "tables"
    assert run(output, newest, older, "--log-dir", own, "--log-dir", other) == ExitCode.DONE
    said = capsys.readouterr().out.splitlines()
    assert f"cluster cluster at /kafka, as of zxid 0x200: {newest}" in said
    assert f"cluster cluster at /kafka, as of zxid 0x100: {older}, not the newest" in said
    rows = table(spark, output, "consumer_findings").collect()
    assert {row.input_path for row in rows} == {str(newest)}
    found = {(row.finding, row.topic, row.partition) for row in rows}
    assert found == {
        ("partition_without_owner", "t", 2),
        ("owner_not_assigned", "t", 0),
        ("offset_beyond_log_end", "t", 0),
        ("offset_not_decimal", "t", 1),
        ("topic_being_deleted", "Topic", None),
        ("topic_not_registered", "Topic-x", None),
        ("wildcard_hits_others", "Topic", None),
        ("cluster_ids_differ", None, None),
        ("group_without_members", None, None),  # of the other cluster, of which no log is given
    }
    by_root = {(row.chroot, row.detail) for row in rows if row.finding == "cluster_ids_differ"}
    assert by_root == {
        (root, f"{other} is of cluster another, not of {cluster_id}")
        for root, cluster_id in (("/kafka", "cluster"), ("/other", "second"))
    }
    details = {row.finding: row.detail for row in rows}
    assert details["offset_beyond_log_end"] == "offset 1000, the log has 0 to 3"
    assert details["wildcard_hits_others"] == "Topic-* also names Topic-x-0"
    owned = table(spark, output, "partition_ownership").orderBy("chroot", "partition").collect()
    assert [row.high_watermark for row in owned] == [3, None, None, None]
    first = owned[0]
    assert (first.owner, first.assigned, first.owner_session_id) == ("b-0", "a-0", SESSION)
    assert (first.claimed_ms, first.committed_ms) == (CTIME_MS, MTIME_MS)
    assert (first.committed_offset, owned[1].committed_offset) == (1000, None)


@pytest.mark.deep
def test_what_is_not_a_data_directory_is_unreadable_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "tables", tmp_path) == ExitCode.UNREADABLE_INPUT
    assert "holds no snapshot.* and no log.* of ZooKeeper" in capsys.readouterr().err
    folder = write_ensemble(tmp_path / "zookeeper", TREE)
    assert run(folder / "tables", folder) == ExitCode.WRONG_ARGUMENTS
    assert run(tmp_path / "x", folder, "--log-dir", tmp_path / "nowhere") == (
        ExitCode.UNREADABLE_INPUT
    )
