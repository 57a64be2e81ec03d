"""Small directories of real brokers and servers, which are mutated: every kind of file that is read
is in one of them."""

import json
import tarfile
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.wire.compression import CompressionType
from tests.support.logs.tiered_objects import store_segment
from tests.support.messages.registry_records import reference, registered, subject_deleted
from tests.support.repository import DATA

# The content of files by their paths.
Files = dict[str, bytes]

_AVRO = '{"type":"record","name":"A","fields":[{"name":"x","type":["null","int"]}]}'
_JSON_SCHEMA = {
    "type": "object",
    "properties": {"x": {"type": "array", "items": {"type": "integer"}}, "y": {"$ref": "#"}},
}
_PROTO = 'syntax = "proto3"; package a; message M { message N { int32 x = 1; } N n = 1; }'
# Preallocated indexes and ZooKeeper's logs are mostly zeros.
_LARGEST_FILE = 70_000
_LARGEST_INDEX = 512
_BIRTH_MS = 1_700_000_000_000


def template(kind: str, chance: Random) -> Files:
    """A few directories of a kind, and the files beside them."""
    files = dict(_TEMPLATES[kind]())
    folders = sorted({path.split("/")[0] for path in files if "/" in path})
    kept = chance.sample(folders, min(len(folders), chance.choice((1, 2, 3))))
    return {
        path: data for path, data in files.items() if path.split("/")[0] in kept or "/" not in path
    }


def kinds() -> list[str]:
    """The kinds of directories."""
    return list(_TEMPLATES)


@cache
def _archived(name: str, top: str) -> Files:
    files: Files = {}
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        for member in archive:
            path = member.name.removeprefix("./")
            content = archive.extractfile(member) if member.isfile() else None
            if content is None or not path.startswith(top):
                continue
            most = _LARGEST_INDEX if path.endswith("index") else _LARGEST_FILE
            if member.size <= most or path.endswith("index"):
                files[path.removeprefix(top)] = content.read(most)
    return files


def _log_dir(name: str, *partitions: str) -> Callable[[], Files]:
    def files() -> Files:
        return {
            path: data
            for path, data in _archived(f"{name}.logs", "log-dirs/").items()
            if "/" not in path or path.split("/")[0] in partitions
        }

    return files


def _zookeeper(name: str) -> Callable[[], Files]:
    return lambda: _archived(f"{name}.zookeeper", "zookeeper-after-broker-stop/")


@cache
def _schemas() -> Files:
    nested = '{"type":"array","items":' * 200 + '"int"' + "}" * 200
    pairs = [
        registered(1, _AVRO),
        registered(2, '["A","B"]', "b", references=[reference("A", "orders-value")]),
        registered(3, json.dumps(_JSON_SCHEMA), "j", schemaType="JSON"),
        registered(4, _PROTO, "p", schemaType="PROTOBUF"),
        registered(5, nested, "deep"),
        subject_deleted("b"),
    ]
    records = [Record(offset, _BIRTH_MS, 0, *pair, ()) for offset, pair in enumerate(pairs)]
    return {
        "_schemas-0/00000000000000000000.log": write_batch(records),
        "given/schema.avsc": _AVRO.encode(),
        "given/schema.json": json.dumps(_JSON_SCHEMA).encode(),
        "given/schema.proto": _PROTO.encode(),
    }


@cache
def _bombs() -> Files:
    """Batches that become large: their records are zeros, or have many headers."""
    large = [Record(0, _BIRTH_MS, 0, b"k", bytes(48 * 2**20), ())]
    many = [Record(0, _BIRTH_MS, 0, b"k", b"v", (("", None),) * 300_000)]
    return {
        f"bomb-{number}/00000000000000000000.log": write_batch(
            records, BatchFields(compression=compression)
        )
        for number, (records, compression) in enumerate(
            (records, compression)
            for records in (large, many)
            for compression in (CompressionType.ZSTD, CompressionType.GZIP)
        )
    }


@cache
def _tiered_chunks() -> Files:
    segment = write_batch([Record(n, _BIRTH_MS, n, b"k", bytes(200), ()) for n in range(60)])
    with tempfile.TemporaryDirectory() as folder:
        for number, is_compressed in enumerate((False, True)):
            store_segment(Path(folder), f"t-{number}", 0, segment, is_compressed=is_compressed)
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file()
        }


def _settings() -> Files:
    return {
        **_log_dir("kafka44", "shop.share-0")(),
        "server.properties": b"log.retention.hours=1\nlog.cleanup.policy=compact\n",
        "topics.json": json.dumps({"shop.share": {"retention.ms": "1000"}}).encode(),
        "shop.share-0/00000000000000000000.log.deleted": b"",
        "remote_log_snapshot": bytes(40),
    }


_TEMPLATES: dict[str, Callable[[], Files]] = {
    "kafka44": _log_dir(
        "kafka44",
        "shop.share-0",
        "__consumer_offsets-4",
        "__consumer_offsets-1",
        "shop.tx.out-0",
        "shop.tx-1",
        "__transaction_state-1",
        "__share_group_state-0",
        "shop.compact-keep-0",
        "shop.compact-tx-0",
        "shop.segms-0",
        "shop.broker_recompress-0",
        "shop.del-records-mid-0",
    ),
    "metadata": _log_dir("kafka44", "__cluster_metadata-0"),
    "kafka010": _log_dir(
        "kafka010",
        "__consumer_offsets-0",
        "old.append_time-0",
        "old.compacted-0",
        "old.v0.mixed-0",
        "old.multi-3-2",
        "old.codec-snappy-0",
        "old.codec-lz4-0",
    ),
    "kafka08": _log_dir(
        "kafka08", "o8.multi-3-1", "o8.codec-gzip-0", "o8.codec-snappy-0", "o8.v0.compacted-0"
    ),
    "tiered": lambda: _archived("tiered43.tiered", "kafka-tiered-storage/"),
    "tiered_chunks": _tiered_chunks,
    "settings": _settings,
    "schemas": _schemas,
    "bombs": _bombs,
    "zookeeper39": _zookeeper("kafka39zk"),
    "zookeeper010": _zookeeper("kafka010"),
}
