"""`kafkalog quorum rebuild --from-data` on directories of real brokers, against the metadata of the
same clusters: tests/broker shows that Kafka starts from it. Rules: F810 to F814."""

import csv
import json
import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.format.side_files.producer_snapshot import ProducerEntry, write_producer_snapshot
from kafkalog.inspection.metadata.copies import metadata_copies
from kafkalog.inspection.metadata.quorum import Quorum
from kafkalog.inspection.metadata.replay import image_at
from tests.support.repository import ROOT, Unpack

VOTER = ("--voter", "7@host-7:9093")
BROKERS = (11, 12, 13)
TOPIC = "orders"


def run(*arguments: object) -> tuple[int, str, str]:
    given = ["quorum", "rebuild", "--from-data", *map(str, arguments), *VOTER]
    result = CliRunner().invoke(kafkalog, given)
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: object) -> list[dict[str, Any]]:
    code, out, err = run(*arguments, "--format", "json")
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


def image_rows(path: Path, table: str) -> list[dict[str, Any]]:
    (copy,) = metadata_copies([str(path)])
    return [*image_at(copy.log).image.rows(table)]


@pytest.fixture
def nodes(unpacked: Unpack, tmp_path: Path) -> Path:
    """Three brokers that had diverged, and their controller."""
    return Path(shutil.copytree(unpacked("diverged44.logs"), tmp_path / "nodes"))


@pytest.fixture
def data(nodes: Path) -> list[Path]:
    return [nodes / f"node-{broker}" / "data" for broker in BROKERS]


def test_partitions_are_those_of_the_cluster(nodes: Path, data: list[Path], tmp_path: Path) -> None:
    # F810, F811
    new = tmp_path / "new"
    code, out, _ = run(*data, "--to", new)
    assert code == 0 and "set controller.quorum.voters=7@host-7:9093 on all nodes" in out
    directories = image_rows(nodes / "node-1" / "metadata", "broker")
    ids = {row["broker_id"]: row["log_dirs"] for row in directories}
    # No replica of the topic of transactions is among the files of this fixture.
    real = {
        (row["topic_id"], row["partition"]): row
        for row in image_rows(nodes / "node-1" / "metadata", "partition")
    }
    found = image_rows(new, "partition")
    assert len(found) == len(real) - 1 == 3
    for row in found:
        own = real[row["topic_id"], row["partition"]]
        assert sorted(row["replicas"]) == sorted(own["replicas"])
        # All brokers had stopped, the last of them with the only replica in sync.
        assert row["isr"] == own["eligible_leader_replicas"] == [11]
        assert (row["leader"], own["leader"]) == (-1, -1)
        # What has no leader begins an epoch that no replica has seen.
        assert row["leader_epoch"] == own["leader_epoch"] - 1
        assert [[each] for each in row["directories"]] == [ids[each] for each in row["replicas"]]


def test_what_is_guessed_is_marked(data: list[Path]) -> None:
    # F810 to F814
    found = {row["subject"]: row for row in rows(*data)}
    assert found[TOPIC]["guessed"] == []
    partition = found[f"{TOPIC}-0"]
    known = {"partitionId", "topicId", "leader", "removingReplicas", "addingReplicas"}
    assert {*partition["guessed"]} == {*partition["value"]} - known - {"directories"}
    assert found["metadata.version"]["guessed"] == ["featureLevel"]
    assert found["producer ids"]["guessed"] == ["brokerId", "brokerEpoch", "nextProducerId"]
    policies = {name: found[f"{name} cleanup.policy"] for name in (TOPIC, "__consumer_offsets")}
    assert [row["value"]["value"] for row in policies.values()] == ["delete", "compact"]
    assert all(row["guessed"] == ["value"] for row in policies.values())
    assert found[f"{TOPIC} retention.ms"]["value"]["value"] == "-1"
    code, out, _ = run(*data)
    assert code == 0
    assert f"PartitionRecord     {TOPIC}-1 " in out and " replicas,isr,leaderEpoch," in out
    assert "not known, and not written: configs of topics" in out
    assert "nothing is written without --to DIR" in out
    code, out, _ = run(*data, "--format", "csv")
    assert (
        json.loads([*csv.DictReader(StringIO(out))][-1]["guessed"])
        == found["producer ids"]["guessed"]
    )


def test_features_that_are_given_are_not_guessed(data: list[Path], tmp_path: Path) -> None:
    # F814: with dynamic voters the log names them.
    new = tmp_path / "new"
    given = ("--feature", "kraft.version=1", "--feature", "group.version=1")
    levels = {
        row["subject"]: (row["value"]["featureLevel"], row["guessed"])
        for row in rows(*data, *given)
        if row["record_name"] == "FeatureLevelRecord"
    }
    # Kafka 4.0 is the first release with this feature.
    assert levels == {
        "metadata.version": (25, ["featureLevel"]),
        "transaction.version": (2, ["featureLevel"]),
        "group.version": (1, []),
    }
    assert run(*data, *given, "--to", new)[0] == 0
    (copy,) = metadata_copies([str(new)])
    quorum = Quorum([copy])
    assert quorum.kraft_version == 1
    ((voter, directory, places),) = quorum.voters
    assert (voter, directory, places) == (7, copy.directory_id, ("CONTROLLER://host-7:9093",))
    assert quorum.majority_offset == quorum.best.position[1]


def levels_of(*arguments: object) -> dict[str, int]:
    return {
        row["subject"]: row["value"]["featureLevel"]
        for row in rows(*arguments)
        if row["record_name"] == "FeatureLevelRecord"
    }


@pytest.fixture
def all_groups(unpacked: Unpack, tmp_path: Path) -> tuple[Path, dict[str, int]]:
    """Return the log directory of a broker with groups of all kinds, without its metadata, and the
    levels of features that these had."""
    (metadata,) = unpacked("kafka44.logs").rglob("__cluster_metadata-0")
    levels = {row["feature"]: row["level"] for row in image_rows(metadata.parent, "feature")}
    copy = tmp_path / "broker"
    shutil.copytree(metadata.parent, copy)
    shutil.rmtree(copy / "__cluster_metadata-0")
    return copy, levels


def test_features_are_those_that_the_records_of_groups_need(
    all_groups: tuple[Path, dict[str, int]],
) -> None:
    # F923, F924: the broker was of 4.4.0, whose features 4.2 has with lower levels.
    copy, own = all_groups
    found = levels_of(copy)
    assert found == {
        "metadata.version": 29,
        "transaction.version": 2,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
    }
    assert {name for name, level in found.items() if level > own[name]} == set()
    assert {*own} - {*found} == {"eligible.leader.replicas.version"}
    assert levels_of(copy, "--release-version", "4.4") == {name: own[name] for name in found}
    assert levels_of(copy, "--feature", "metadata.version=26") == {
        **{name: found[name] for name in ("transaction.version", "group.version")},
        "metadata.version": 26,
    }
    for path in (*copy.glob("__consumer_offsets-*"), *copy.glob("__share_group_state-*")):
        shutil.rmtree(path)
    # What transactions need, 4.0 was the first to have.
    assert levels_of(copy)["metadata.version"] == 25


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (("metadata.version=6",), "metadata.version=7 or more"),
        (
            ("metadata.version=20", "kraft.version=1"),
            "metadata.version=21 or more with kraft.version=1",
        ),
    ],
)
def test_levels_that_cannot_be_are_refused(
    data: list[Path], features: tuple[str, ...], said: str
) -> None:
    # F814
    code, out, err = run(*data, *(word for each in features for word in ("--feature", each)))
    assert (code, out) == (2, "") and said in err


def test_a_level_without_directories_has_records_without(data: list[Path], tmp_path: Path) -> None:
    # F814
    new = tmp_path / "new"
    assert run(*data, "--feature", "metadata.version=16", "--to", new)[0] == 0
    found = {each for row in image_rows(new, "partition") for each in row["directories"]}
    assert found == {"A" * 22}


def test_brokers_before_directory_ids_get_none(tmp_path: Path) -> None:
    # F814
    new = tmp_path / "new"
    assert run(ROOT / "examples" / "shop-week", "--to", new)[0] == 0
    assert [row["level"] for row in image_rows(new, "feature")] == [7]
    found = image_rows(new, "partition")
    assert len(found) == 5
    assert {each for row in found for each in row["directories"]} == {"A" * 22}


def test_producer_ids_go_on_above_those_of_the_cluster() -> None:
    # F813: the controller of the same broker had given out fewer.
    found = rows(ROOT / "examples" / "log-dirs" / "kafka-4.4", "--create-missing")
    (row,) = (row for row in found if row["record_name"] == "ProducerIdsRecord")
    (own,) = image_rows(ROOT / "examples" / "controller", "producer_ids")
    assert row["value"]["nextProducerId"] >= own["next_producer_id"] > 0


def test_tiered_topics_stay_tiered(unpacked: Unpack) -> None:
    # F812
    log_dir = unpacked("tiered43.logs") / "log-dirs"
    own = {
        row["resource_name"]
        for row in image_rows(log_dir, "config")
        if (row["name"], row["value"]) == ("remote.storage.enable", "true")
    }
    found = {
        row["value"]["resourceName"]
        for row in rows(*log_dir.glob("tier.*"))
        if row["record_name"] == "ConfigRecord"
        if row["value"]["name"] == "remote.storage.enable"
    }
    assert found == own != set()


def test_a_partition_without_a_directory_is_refused_or_begins_empty(data: list[Path]) -> None:
    # F810
    for path in data:
        shutil.rmtree(path / f"{TOPIC}-0")
    code, _, err = run(*data)
    assert code == 3 and f"no log directory has {TOPIC}-0" in err and "--create-missing" in err
    found = {row["subject"]: row for row in rows(*data, "--create-missing")}
    empty, other = found[f"{TOPIC}-0"], found[f"{TOPIC}-1"]
    assert sorted(empty["value"]["isr"]) == sorted(other["value"]["replicas"])
    assert empty["value"]["leaderEpoch"] == 0 and "directories" in empty["guessed"]
    far = shutil.move(data[0] / f"{TOPIC}-1", data[0] / f"{TOPIC}-2147483647")
    code, out, err = run(*data, "--create-missing")
    assert (code, out) == (3, "")
    assert f"{far}: 2,147,483,646 partitions before this one have no directory" in err


def test_producer_ids_that_no_record_can_hold_are_refused(data: list[Path]) -> None:
    # F813
    snapshot = data[0] / f"{TOPIC}-0" / f"{10**12:020d}.snapshot"
    entry = ProducerEntry(2**63 - 1, *(0 for _ in ProducerEntry._fields[1:]))
    snapshot.write_bytes(write_producer_snapshot([entry]))
    code, out, err = run(*data)
    assert (code, out) == (3, "") and "nextProducerId is int64 and cannot be" in err


def test_directories_that_contradict_each_other_are_refused(data: list[Path]) -> None:
    # F810
    broker, other = data[0], data[1]
    metadata = broker / f"{TOPIC}-0" / "partition.metadata"
    text = metadata.read_text()
    metadata.unlink()
    code, out, err = run(*data)
    assert (code, out) == (3, "")
    assert f"{metadata} is missing: the topic's id is not known" in err
    metadata.write_text("version: 0\ntopic_id: ?")
    code, _, err = run(*data)
    assert code == 3 and f"{metadata}: '?' is not an id: the topic's id is not known" in err
    # Of one partition, and of two partitions of one topic.
    metadata.write_text("version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw")
    code, _, err = run(*data)
    assert code == 3 and "the topic was deleted and recreated" in err
    code, _, err = run(broker / f"{TOPIC}-0", broker / f"{TOPIC}-1")
    assert code == 3 and f"{TOPIC} has two topic ids" in err and "AAECAwQFBgcICQoLDA0ODw" in err
    metadata.write_text(text)
    for path in other.glob(f"{TOPIC}-1"):
        shutil.rmtree(path)
    properties = other / "meta.properties"
    properties.write_text(properties.read_text().replace("cluster.id=a2F", "cluster.id=b2F"))
    code, _, err = run(broker / f"{TOPIC}-1", other / f"{TOPIC}-0")
    assert code == 3 and "meta.properties of all log directories" in err and "b2F" in err
    properties.unlink()
    code, _, err = run(other)
    assert code == 3 and f"{other}: no meta.properties says of which broker it is" in err


def test_a_copy_of_the_metadata_that_is_left_is_used(nodes: Path, data: list[Path]) -> None:
    code, _, err = run(*data, nodes / "node-1" / "metadata")
    assert code == 3 and "__cluster_metadata-0 is a copy of the metadata" in err
    for option in (("--create-missing",), ("--feature", "metadata.version=25")):
        given = ["quorum", "rebuild", str(nodes / "node-1" / "metadata"), *VOTER, *option]
        result = CliRunner().invoke(kafkalog, given)
        assert result.exit_code == 2 and "only with --from-data" in result.stderr
