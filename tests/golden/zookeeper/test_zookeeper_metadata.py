"""`kafkalog metadata` on data directories of ZooKeeper, against what the brokers' own tools and
clients said of the same clusters. Rules: F435, F440, F441, F465, F831 and F832."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options.zookeeper.zookeeper_options import read_zookeeper_options
from kafkalog.views.reading.zookeeper_reading import read_data_dir
from kafkalog.words import time_text
from kafkalog.zookeeper.data_dir import find_data_dirs
from tests.support.golden.znodes import Row, listing
from tests.support.repository import Unpack
from tests.support.zookeeper.zookeeper_files import Node, snapshot_bytes, write_data_dir

# What kafka-topics --describe prints of 0.8.2 and 0.10.2.
TOPIC = re.compile(r"Topic:(\S+)\tPartitionCount:(\d+)\tReplicationFactor:(\d+)\tConfigs:(\S*)")
PARTITION = re.compile(
    r"\tTopic: (\S+)\tPartition: (\d+)\tLeader: (-?\d+)\tReplicas: (\S+)\tIsr: (\S+)"
)


def run(path: Path, *options: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["metadata", str(path), *options])
    return result.exit_code, result.stdout, result.stderr


def rows(path: Path, *options: str) -> list[dict[str, Any]]:
    code, out, err = run(path, *options, "--format", "json")
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


def live(unpacked: Unpack, name: str) -> Path:
    return unpacked(f"{name}.zookeeper") / "zookeeper-live"


def znodes(unpacked: Unpack, name: str) -> list[Row]:
    return listing(unpacked(f"{name}.zookeeper"))


@pytest.mark.parametrize("name", ["kafka08", "kafka010"])
def test_topics_and_partitions_are_what_the_brokers_tool_printed(
    name: str, unpacked: Unpack
) -> None:
    said = (unpacked(f"{name}.golden") / "tools" / "topics_describe.txt").read_text()
    path = live(unpacked, name)
    found = rows(path, "--by", "topic")
    assert {(row["topic_id"], row["leaderless_partitions"]) for row in found} == {(None, 0)}
    assert [
        (row["topic"], row["partitions"], row["replication_factor"], row["configs"])
        for row in found
    ] == [
        (
            topic,
            int(count),
            int(factor),
            dict(each.split("=") for each in configs.split(",") if each),
        )
        for topic, count, factor, configs in TOPIC.findall(said)
    ]
    assert [
        (row["topic"], row["partition"], row["leader"], row["replicas"], row["isr"])
        for row in rows(path, "--by", "partition")
    ] == [
        (
            topic,
            int(number),
            int(leader),
            *([*map(int, each.split(","))] for each in (replicas, isr)),
        )
        for topic, number, leader, replicas, isr in PARTITION.findall(said)
    ]


def test_topics_are_what_the_admin_client_was_told(unpacked: Unpack) -> None:
    told = json.loads((unpacked("kafka39zk.golden") / "admin.json").read_text())
    path = live(unpacked, "kafka39zk")
    found = rows(path, "--by", "topic")
    assert {row["topic"]: row["topic_id"] for row in found} == {
        name: each["topicId"] for name, each in told["topics"].items()
    }
    for row in found:
        assert row["configs"] == told["topic_configs_not_default"].get(row["topic"], {})
    assert [
        (row["topic"], row["partition"], row["leader"], row["replicas"], row["isr"])
        for row in rows(path, "--by", "partition")
    ] == [
        (name, each["partition"], each["leader"], [1], [1])
        for name, topic in sorted(told["topics"].items())
        for each in topic["partitions"]
    ]
    (broker,) = rows(path, "--by", "broker")
    assert told["cluster"]["nodes"] == "[localhost:19092 (id: 1 rack: null)]"
    assert (broker["broker_id"], broker["end_points"], broker["rack"]) == (
        *(1, ["PLAINTEXT://localhost:19092"], None),
    )


def test_partitions_have_the_epochs_of_their_znodes(unpacked: Unpack) -> None:
    states = {
        znode["path"]: znode
        for znode in znodes(unpacked, "kafka39zk")
        if znode["path"].endswith("/state")
    }
    found = rows(live(unpacked, "kafka39zk"), "--by", "partition")
    assert len(found) == len(states)
    for row in found:
        znode = states[f"/brokers/topics/{row['topic']}/partitions/{row['partition']}/state"]
        assert row["partition_epoch"] == znode["version"]
        assert row["leader_epoch"] == json.loads(znode["text"])["leader_epoch"]


def test_users_quotas_and_configs_are_those_of_the_znodes(unpacked: Unpack) -> None:
    # F831
    path = live(unpacked, "kafka39zk")
    (znode,) = (
        json.loads(each["text"])["config"]
        for each in znodes(unpacked, "kafka39zk")
        if each["path"] == "/config/users/zk.alice"
    )
    (user,) = rows(path, "--by", "user")
    hidden = dict.fromkeys(("salt", "stored_key", "server_key"), "***")
    assert user == {"user": "zk.alice", "mechanism": "SCRAM-SHA-256", "iterations": 4096, **hidden}
    (shown,) = rows(path, "--by", "user", "--show-secrets")
    assert znode["SCRAM-SHA-256"] == ",".join(
        [f"{name}={shown[name]}" for name in hidden] + ["iterations=4096"]
    )
    assert rows(path, "--by", "quota") == [
        {"entity": "user=zk.alice", "quota": "consumer_byte_rate", "value": 1000000.0}
    ]
    assert {
        "resource_type": "broker",
        "resource_name": "",
        "name": "message.max.bytes",
        "value": "1500000",
    } in rows(path, "--by", "config")
    assert rows(live(unpacked, "kafka010"), "--by", "quota") == [
        {"entity": "client-id=old.quota-client", "quota": "producer_byte_rate", "value": 1000000.0}
    ]


@pytest.mark.parametrize("name", ["kafka08", "kafka010", "kafka39zk"])
def test_a_topic_is_there_from_the_time_on_when_it_was_created(name: str, unpacked: Unpack) -> None:
    created = {
        znode["path"].rpartition("/")[2]: znode["ctime"]
        for znode in znodes(unpacked, name)
        if re.fullmatch("/brokers/topics/[^/]+", znode["path"])
    }
    assert len(created) > 5
    path = live(unpacked, name)
    for moment in sorted(created.values())[::3]:
        for time_ms in (moment - 1, moment):
            found = {row["topic"] for row in rows(path, "--as-of", str(time_ms))}
            # Some were deleted later.
            assert {topic for topic, since in created.items() if since <= time_ms} <= found
            assert not {topic for topic, since in created.items() if since > time_ms} & found


def test_a_cluster_without_features_and_tokens_has_no_rows_of_them(unpacked: Unpack) -> None:
    # F893
    path = live(unpacked, "kafka39zk")
    (feature,) = (each for each in znodes(unpacked, "kafka39zk") if each["path"] == "/feature")
    assert json.loads(feature["text"]) == {"features": {}, "version": 2, "status": 1}
    assert rows(path, "--by", "feature") == rows(path, "--by", "token") == []


@pytest.mark.parametrize("name", ["kafka08", "kafka010", "kafka39zk"])
@pytest.mark.parametrize("kind", ["topic", "partition", "config", "acl"])
def test_views_have_the_rows_of_the_command(kind: str, name: str, unpacked: Unpack) -> None:
    view, path = f"cluster_{kind}s", live(unpacked, name)
    (data_dir,) = find_data_dirs([str(path)])
    options = read_zookeeper_options({"path": str(path), "view": view})
    columns = tuple(field.name for field in arrow_schema(view))
    batches = read_data_dir(data_dir, options, columns)
    found = [row for batch in batches for row in batch.to_pylist(maps_as_pydicts="strict")]
    ids = [
        json.loads(each["text"])["id"]
        for each in znodes(unpacked, name)
        if each["path"] == "/cluster/id"
    ]
    own = {
        "input_path": str(path),
        "cluster_id": ids[0] if ids else None,
        "chroot": "",
        "as_of_zxid": int(run(path)[1].splitlines()[-1].split("zxid ")[1].split(":")[0], 16),
        "as_of_offset": None,
        "as_of_ms": None,
    }
    assert found == [{**own, **row} for row in rows(path, "--by", kind)]
    # None of these clusters has ACLs.
    assert bool(found) is (kind != "acl")


def test_a_broker_that_has_left_is_not_there(unpacked: Unpack) -> None:
    path = unpacked("kafka39zk.zookeeper") / "zookeeper-after-broker-stop"
    assert rows(path, "--by", "broker") == []
    # The only broker of the cluster kept the leadership of its partitions.
    assert {row["leader"] for row in rows(path, "--by", "partition")} == {1}


def test_commands_make_the_topics_again(unpacked: Unpack) -> None:
    code, out, _ = run(live(unpacked, "kafka010"), "--commands", "--topic", "old.append_time")
    assert code == 0
    head, line = out.splitlines()
    assert head.startswith("# ") and "as of zxid 0x" in head
    assert "--create --topic old.append_time --replica-assignment 0" in line
    assert line.endswith("--config message.timestamp.type=LogAppendTime")


def test_what_zookeeper_does_not_have_is_refused(unpacked: Unpack) -> None:
    path = live(unpacked, "kafka39zk")
    for options, words in (
        (("--by", "voter"), "topic, partition, broker, config, acl, user, quota, feature, token"),
        (("--diff", "start", "end", "--by", "topic"), "only --by partition"),
        (("--diff", "5", "end", "--by", "partition"), "times, start and end"),
        (("--as-of-offset", "7"), "needs __cluster_metadata"),
        (("--topic", "nowhere"), "topics at that moment"),
    ):
        code, _, err = run(path, *options)
        assert (code, words in err) == (2, True)
    code, out, _ = run(path, "--by", "broker")
    assert (code, "LOG-DIRS" in out, "as of zxid 0x" in out) == (0, False, True)


def test_partitions_of_a_topic_that_is_deleted_lose_their_leaders(unpacked: Unpack) -> None:
    # F1244; leaders of live clusters: tests/broker/cluster/test_zookeeper_leaders_on_brokers.py
    for name, topic in (("kafka010", "old.deleted"), ("kafka39zk", "zk.to-be-deleted")):
        given = ("--diff", "start", "end", "--topic", topic, "--format", "json")
        code, out, _ = run(live(unpacked, name), *given)
        assert code == 0
        found = [json.loads(line) for line in out.splitlines()]
        (row,) = [row for row in found if row["column"] == "leader"]
        assert (row["new"], row["cause"]) == (-1, "its topic was deleted")
        assert [row["change"] for row in found if row["column"] is None] == ["created", "deleted"]


def test_an_empty_period_is_explained(unpacked: Unpack, tmp_path: Path) -> None:
    # F1352: the newest change is that of the last row, which no change that a client saw follows.
    states = [row for row in znodes(unpacked, "kafka08") if row["path"].endswith("/state")]
    path, given = live(unpacked, "kafka08"), ("--by", "partition", "--diff")
    last = max(rows(path, *given, "start", "end"), key=lambda row: row["zxid"])
    assert last["timestamp_ms"] >= max(row["mtime"] for row in states)
    newest = time_text(last["timestamp_ms"])
    code, out, err = run(path, *given, "2030-01-01", "end")
    assert (code, out) == (0, "")
    said = f"nothing changed in this period: the newest change of a partition is of {newest}; "
    assert err.startswith(said)
    # F1244: without its first log, a copy does not know what the cluster did before.
    assert "logs begin later" not in run(path, *given, "start", "end")[2]
    cut = Path(shutil.copytree(live(unpacked, "kafka39zk"), tmp_path / "cut"))
    for name in ("log.1", "snapshot.0"):
        (cut / "version-2" / name).unlink()
    assert "logs begin later than the cluster" in run(cut, *given, "start", "end")[2]


def test_files_without_a_cluster_are_named_with_what_is_missing(tmp_path: Path) -> None:
    # F485. As the first snapshot of a server is: ZooKeeper's own znodes.
    nodes = [Node(b""), Node(b"/zookeeper"), Node(b"/zookeeper/quota")]
    path = write_data_dir(tmp_path / "zk", {0: snapshot_bytes(nodes)})
    for options in ((), ("--chroot", "/kafka"), ("--commands",)):
        code, out, err = run(path, *options)
        assert (code, out) == (ExitCode.UNREADABLE_INPUT, "")
        assert f"{path}: no Kafka cluster as of zxid 0x0, only /zookeeper is there: give" in err
        assert "dataLogDir" in err
