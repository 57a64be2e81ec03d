"""Damage to what a broker reads at its start, and what Kafka 4.4.0 and 4.1.1 did about it.

tests/broker/damage starts brokers on each; tests/golden has the outcomes.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kafkalog.format.message_set import write_old_message
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.messages.record_writer import write_record_value
from tests.support.broker.node_starts.startup_damages import (
    Damage,
    changed,
    copied,
    made,
    removed,
    written,
)

_ORDERS = "d2/orders-0"
_METADATA = "d1/__cluster_metadata-0"
_FORMATTED = "00000000000000000000-0000000000.checkpoint"
_FUTURE = f"orders-0.{7:032x}-future"
_DELETED, _STRAY = f"orders-0.{7:032x}-delete", f"orders-0.{7:032x}-stray"
_ID = "AAAAAAAAAAAAAAAAAAAAZQ"
_OF_D1 = frozenset(("__transaction_state-0", "orders-1", "pay-0"))
_OF_D2 = frozenset(("__consumer_offsets-0", "comp-0", "orders-0"))
_TOPIC = "__cluster_metadata"
# A record's type and version, and its values or their bytes.
MetadataRecord = tuple[int, int, dict[str, object] | bytes]
_NOW_MS = 1_795_632_060_000


@dataclass(frozen=True)
class ReadDamage:
    """Damage, and the outcome: whether the node starts, and by their names the directories that go
    offline, the partitions that are set aside, and those without a leader."""

    make: Damage
    starts: bool = True
    offline: frozenset[str] = frozenset()
    set_aside: frozenset[str] = frozenset()
    leaderless: frozenset[str] = frozenset()


def _ends(make: Damage) -> ReadDamage:
    return ReadDamage(make, starts=False)


def _offline(make: Damage) -> ReadDamage:
    return ReadDamage(make, offline=frozenset(("d2",)), leaderless=_OF_D2)


def _aside(make: Damage, name: str = "orders-0") -> ReadDamage:
    return ReadDamage(make, set_aside=frozenset((name,)))


def directory_id(folder: Path, place: str) -> str:
    lines = (folder / place / "meta.properties").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("directory.id="))


def _with_directory_id(text: str) -> Damage:
    def change(folder: Path) -> None:
        changed("d2/meta.properties", directory_id(folder, "d2"), text)(folder)

    return change


def topic_id(folder: Path, partition: str = _ORDERS) -> str:
    return (folder / partition / "partition.metadata").read_text().split("topic_id: ")[1].strip()


def _topic_id_as(form: str) -> Damage:
    def change(folder: Path) -> None:
        text = form.replace("ID", topic_id(folder))
        (folder / _ORDERS / "partition.metadata").write_bytes(text.encode())

    return change


def _in_place_of(path: str) -> Damage:
    def change(folder: Path) -> None:
        (folder / path).unlink(missing_ok=True)
        (folder / path).mkdir()

    return change


def all_of(*damages: Damage) -> Damage:
    def change(folder: Path) -> None:
        for damage in damages:
            damage(folder)

    return change


def _moved(source: str, target: str) -> Damage:
    return lambda folder: (folder / source).rename(folder / target)


def metadata(records: Callable[[Path], Sequence[MetadataRecord]]) -> Damage:
    """Return what appends records to the metadata. The control's copy ends at offset 85 in epoch
    2."""

    def append(folder: Path) -> None:
        values = [
            each if isinstance(each, bytes) else write_record_value(_TOPIC, number, version, each)
            for number, version, each in records(folder)
        ]
        batch = [Record(85 + i, _NOW_MS, 0, None, value) for i, value in enumerate(values)]
        with (folder / _METADATA / f"{0:020d}.log").open("ab") as log:
            log.write(write_batch(batch, BatchFields(leader_epoch=2)))

    return append


def config_record(kind: int, resource: str, name: str, value: str) -> MetadataRecord:
    """Return the record of a setting, of a topic (2) or a broker (4)."""
    return 4, 0, {"resourceType": kind, "resourceName": resource, "name": name, "value": value}


def _feature(name: str, level: int) -> Damage:
    return metadata(lambda folder: [(12, 0, {"name": name, "featureLevel": level})])


def _config(kind: int, resource: str, name: str, value: str) -> Damage:
    return metadata(lambda folder: [config_record(kind, resource, name, value)])


_setting = partial(changed, "server.properties")


def _property(line: str) -> Damage:
    def change(folder: Path) -> None:
        with (folder / "server.properties").open("a") as file:
            file.write(f"{line}\n")

    return change


def _copied_file(source: str, target: str) -> Damage:
    return lambda folder: shutil.copy(folder / source, folder / target)


def _old_segment(attributes: int) -> Damage:
    """Return what adds a segment with a message of format 0, whose value is not compressed."""

    def add(folder: Path) -> None:
        message = write_old_message(16, 0, None, b"x" * 40, attributes=attributes)
        for ending, data in ((".log", message), (".index", b""), (".timeindex", b"")):
            (folder / _ORDERS / f"{16:020d}{ending}").write_bytes(data)

    return add


_EPOCHS = f"{_ORDERS}/leader-epoch-checkpoint"
_QUORUM = f"{_METADATA}/quorum-state"
READ_DAMAGES: dict[str, ReadDamage] = {
    "meta-id-zero": _ends(_with_directory_id("A" * 22)),
    "meta-id-reserved": _ends(_with_directory_id("A" * 21 + "Q")),
    "meta-id-nonsense": _offline(_with_directory_id("not an id")),
    "meta-node-space": _offline(changed("d2/meta.properties", "node.id=1", "node.id=1 ")),
    "meta-node-word": _offline(changed("d2/meta.properties", "node.id=1", "node.id=one")),
    "meta-node-negative": _ends(changed("d2/meta.properties", "node.id=1", "node.id=-1")),
    "meta-escape": _offline(changed("d2/meta.properties", "cluster.id=", "cluster.id=\\uZ")),
    "meta-is-directory": _offline(_in_place_of("d2/meta.properties")),
    "meta-of-metadata-unreadable": _ends(changed("d1/meta.properties", "version=1", "version=2")),
    "meta-version-0-with-broker-id": ReadDamage(
        all_of(
            changed("d2/meta.properties", "version=1", "version=0"),
            changed("d2/meta.properties", "node.id", "broker.id"),
        )
    ),
    "topic-id-three-lines": ReadDamage(_topic_id_as("version: 0\ntopic_id: ID\nmore: 1\n")),
    "topic-id-padded": ReadDamage(_topic_id_as("version: 0\ntopic_id: ID==\n")),
    "topic-id-version-negative": _offline(_topic_id_as("version: -1\ntopic_id: ID\n")),
    "topic-id-blank-line-first": _offline(_topic_id_as("\nversion: 0\ntopic_id: ID\n")),
    "topic-id-is-directory": _offline(_in_place_of(f"{_ORDERS}/partition.metadata")),
    "topic-id-unknown": _aside(
        written(f"{_ORDERS}/partition.metadata", f"version: 0\ntopic_id: {_ID}\n")
    ),
    "topic-id-of-metadata-empty": _ends(written(f"{_METADATA}/partition.metadata", "")),
    "topic-id-of-metadata-garbage": _ends(written(f"{_METADATA}/partition.metadata", "garbage")),
    "name-with-space": _aside(made("d2/a b-0"), "a b-0"),
    "name-with-zeros": _aside(made("d2/orders-00")),
    "future-without-id": _aside(made("d2/orders-0.x-future")),
    "future-beside": _ends(copied(_ORDERS, f"d2/{_FUTURE}")),
    "future-in-assigned-place": _aside(
        all_of(copied(_ORDERS, "d1/orders-0"), _moved(_ORDERS, f"d2/{_FUTURE}"))
    ),
    "future-alone-elsewhere": _aside(_moved(_ORDERS, f"d1/{_FUTURE}")),
    "second-one-empty": _aside(made("d1/orders-0")),
    "epochs-number-too-large": _ends(written(_EPOCHS, "0\n1\n99999999999 0\n")),
    "epochs-below-zero": _ends(written(_EPOCHS, "0\n1\n0 -5\n")),
    "epochs-count-below-zero": _ends(written(_EPOCHS, "0\n-1\n")),
    "epochs-three-words": _offline(written(_EPOCHS, "0\n1\n0 0 0\n")),
    "epochs-of-metadata": _ends(written(f"{_METADATA}/leader-epoch-checkpoint", "garbage\n")),
    "recovery-points-number": ReadDamage(
        written("d2/recovery-point-offset-checkpoint", f"0\n1\norders 0 {'9' * 20}\n")
    ),
    "log-starts-windows": ReadDamage(
        written("d2/log-start-offset-checkpoint", "0\r\n1\r\norders 0 3\r\n")
    ),
    "log-start-twice": ReadDamage(
        written("d2/log-start-offset-checkpoint", "0\n2\norders 0 3\norders 0 5\n")
    ),
    "log-start-of-metadata": ReadDamage(
        written("d1/log-start-offset-checkpoint", "0\n1\n__cluster_metadata 0 50\n")
    ),
    "quorum-epoch-last": _ends(changed(_QUORUM, '"leaderEpoch":2', '"leaderEpoch":2147483647')),
    "quorum-version-word": ReadDamage(changed(_QUORUM, '"data_version":0', '"data_version":"x"')),
    "quorum-two-lines": ReadDamage(changed(_QUORUM, '"data_version":0}', '"data_version":0}\nx')),
    "index-position-below-zero": ReadDamage(
        lambda folder: (folder / f"{_ORDERS}/{15:020d}.index").write_bytes(b"\xff" * 16)
    ),
    "snapshot-of-formatting-empty": ReadDamage(
        all_of(removed(f"{_METADATA}/{_FORMATTED}"), written(f"{_METADATA}/{_FORMATTED}", ""))
    ),
    "snapshot-copy": ReadDamage(
        _copied_file(f"{_METADATA}/{_FORMATTED}", f"{_METADATA}/{_FORMATTED[:31]} (1).checkpoint")
    ),
    "bootstrap-garbage-without-metadata": _ends(
        all_of(removed(_METADATA), written("d1/bootstrap.checkpoint", "garbage"))
    ),
    "record-of-frame-9": _ends(metadata(lambda folder: [(2, 0, b"\x09\x02\x00")])),
    "record-empty": _ends(metadata(lambda folder: [(2, 0, b"")])),
    "record-torn": _ends(metadata(lambda folder: [(2, 0, b"\x01\x02\x00\x05ab")])),
    "record-removes-unknown-topic": _ends(metadata(lambda folder: [(9, 0, {"topicId": _ID})])),
    "record-names-topic-again": _ends(
        metadata(lambda folder: [(2, 0, {"name": "orders", "topicId": _ID})])
    ),
    "in-sync-is-another": ReadDamage(
        metadata(
            lambda folder: [
                (
                    *(5, 1),
                    {
                        "topicId": topic_id(folder),
                        "partitionId": 0,
                        "replicas": [1, 2],
                        "isr": [2],
                        "leader": 2,
                        "directories": [directory_id(folder, "d2"), "A" * 22],
                    },
                )
            ]
        ),
        leaderless=frozenset(("orders-0",)),
    ),
    "config-throttled": _ends(_config(2, "orders", "follower.replication.throttled.replicas", "x")),
    "config-ratio": _ends(_config(2, "orders", "min.cleanable.dirty.ratio", "2")),
    "config-of-missing-topic": ReadDamage(_config(2, "gone", "segment.bytes", "5")),
    "config-of-brokers-nonsense": ReadDamage(_config(4, "", "log.retention.ms", "abc")),
    "log-of-fewer-digits": ReadDamage(
        _copied_file(f"{_ORDERS}/{15:020d}.log", f"{_ORDERS}/20.log")
    ),
    "log-of-more-digits": ReadDamage(
        _copied_file(f"{_ORDERS}/{15:020d}.log", f"{_ORDERS}/{20:021d}.log")
    ),
    "log-dirs-without-one": ReadDamage(_setting("log.dirs=d1,d2", "log.dirs=d1")),
    "properties-number": _ends(_setting("num.partitions=1", "log.retention.ms=abc")),
    "properties-other-voter": _ends(_setting("voters=1@", "voters=2@")),
    "properties-log-dir-twice": ReadDamage(_setting("log.dirs=d1,d2", "log.dirs=d1,d2,d1")),
    "properties-log-dir-in-two-ways": _ends(_setting("log.dirs=d1,d2", "log.dirs=d1,d2,d2/")),
    "properties-metadata-dir-in-two-ways": _ends(
        _setting("num.partitions=1", "metadata.log.dir=d1/")
    ),
    "properties-without-log-dirs": _ends(_setting("log.dirs=d1,d2", "log.dirs=")),
    "metadata-version-lowered": _ends(_feature("metadata.version", 20)),
    "metadata-version-lowered-to-first": _ends(_feature("metadata.version", 7)),
    "groups-lowered": ReadDamage(_feature("group.version", 0)),
    "transactions-lowered": ReadDamage(_feature("transaction.version", 0)),
    "share-groups-lowered": ReadDamage(_feature("share.version", 0)),
    "feature-unknown": _ends(_feature("foo.version", 1)),
    "properties-without-voters": _ends(_setting("controller.quorum.voters=", "#")),
    "properties-without-listener": _ends(_setting("controller.listener.names=", "#")),
    "properties-other-broker-id": _ends(_property("broker.id=5")),
    "properties-broker-among-voters": _ends(_setting("roles=broker,controller", "roles=broker")),
    "properties-tier-without-class": _ends(_property("remote.log.storage.system.enable=true")),
    "properties-tier-listener": _ends(
        _property(
            "remote.log.storage.system.enable=true\n"
            "remote.log.storage.manager.class.name=org.apache.kafka.Any\n"
            "remote.log.metadata.manager.listener.name=FOO"
        )
    ),
    "properties-voter-without-port": _ends(
        _setting("voters=1@localhost:29493", "voters=1@localhost")
    ),
    "properties-controller-without-listener": _ends(_setting(",CONTROLLER://localhost:29493", "")),
    "properties-listener-twice": _ends(
        _setting("listeners=PLAINTEXT:", "listeners=PLAINTEXT://:0,PLAINTEXT:")
    ),
    "properties-port-twice": _ends(
        _setting("CONTROLLER://localhost:29493", "CONTROLLER://localhost:29492")
    ),
    "properties-listener-without-protocol": _ends(_setting("names=CONTROLLER", "names=FOO")),
    "properties-advertised-unknown": _ends(
        _setting("advertised.listeners=PLAINTEXT:", "advertised.listeners=SSL:")
    ),
    "properties-brokers-by-controllers": _ends(
        _setting("listener.name=PLAINTEXT", "listener.name=CONTROLLER")
    ),
    "properties-brokers-by-unknown": _ends(
        _setting("listener.name=PLAINTEXT", "listener.name=FOO")
    ),
    "properties-brokers-by-two": _ends(_property("security.inter.broker.protocol=PLAINTEXT")),
    "properties-without-classic": _ends(
        _property("group.coordinator.rebalance.protocols=consumer")
    ),
    "properties-cleaner-buffer": _ends(_setting("buffer.size=2097152", "buffer.size=1000")),
    "properties-fetch-wait": _ends(_property("replica.fetch.wait.max.ms=99999999")),
    "properties-session-timeout": _ends(_property("group.consumer.session.timeout.ms=1")),
    "properties-share-heartbeat": _ends(_property("group.share.heartbeat.interval.ms=99999999")),
    "properties-empty-log-dir": _ends(_setting("log.dirs=d1,d2", "log.dirs=d1,,d2")),
    "recovery-points-announce-too-many": _ends(
        written("d2/recovery-point-offset-checkpoint", "0\n2147483647\n")
    ),
    "log-dir-is-file": _offline(all_of(removed("d2"), written("d2", "a file"))),
    "log-dir-is-empty": _ends(all_of(removed("d2"), made("d2"))),
    "metadata-without-files": ReadDamage(
        removed(f"{_METADATA}/*.log", f"{_METADATA}/*.checkpoint"), set_aside=_OF_D2 | _OF_D1
    ),
    "second-one-without-id": _aside(
        all_of(copied(_ORDERS, "d1/orders-0"), removed("d1/orders-0/partition.metadata"))
    ),
    "wrapper-of-garbage": _ends(_old_segment(1)),
    "wrapper-of-unknown-codec": _ends(_old_segment(7)),
    "plain-message-of-format-0": ReadDamage(_old_segment(0)),
    "properties-authorizer-unknown": _ends(
        _property("authorizer.class.name=org.apache.kafka.metadata.authorizer.Missing")
    ),
    "snapshot-of-large-epoch": _ends(written(f"{_METADATA}/{50:020d}-99999999999.checkpoint", "x")),
    "snapshot-of-large-offset": _ends(written(f"{_METADATA}/{'9' * 20}-{1:010d}.checkpoint", "x")),
    "snapshot-is-directory": _ends(made(f"{_METADATA}/{50:020d}-{1:010d}.checkpoint")),
    "index-of-last-is-directory": _offline(_in_place_of(f"{_ORDERS}/{15:020d}.index")),
    "times-of-last-are-directory": _offline(_in_place_of(f"{_ORDERS}/{15:020d}.timeindex")),
    "transactions-are-directory": _offline(_in_place_of(f"{_ORDERS}/{3:020d}.txnindex")),
    "producers-are-directory": _offline(_in_place_of(f"{_ORDERS}/{16:020d}.snapshot")),
    "times-of-first-are-directory": ReadDamage(_in_place_of(f"{_ORDERS}/{3:020d}.timeindex")),
    "deleted-with-odd-name": _ends(
        all_of(copied(_ORDERS, f"d2/{_DELETED}"), written(f"d2/{_DELETED}/x.log", "x"))
    ),
    "stray-with-odd-name": _ends(
        all_of(copied(_ORDERS, f"d2/{_STRAY}"), written(f"d2/{_STRAY}/x.snapshot", "x"))
    ),
    "stray-with-epochs-garbage": _offline(
        all_of(
            copied(_ORDERS, f"d2/{_STRAY}"),
            written(f"d2/{_STRAY}/leader-epoch-checkpoint", "garbage\n"),
        )
    ),
    "deleted-with-garbage": ReadDamage(
        all_of(
            copied(_ORDERS, f"d2/{_DELETED}"),
            lambda folder: (folder / f"d2/{_DELETED}/{15:020d}.log").write_bytes(b"\xff" * 300),
        )
    ),
    "future-with-odd-name": _ends(
        all_of(copied(_ORDERS, f"d1/{_FUTURE}"), written(f"d1/{_FUTURE}/x.log", "x"))
    ),
    "index-too-large": ReadDamage(
        lambda folder: os.truncate(folder / f"{_ORDERS}/{3:020d}.index", 5 << 30)
    ),
}
