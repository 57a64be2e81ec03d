"""Every file beside the logs is read to the byte: written back, it is the same. F80 to F82, F100,
F101, F103 to F105, F107, F109."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint, write_offset_checkpoint
from kafkalog.format.side_files.indexes import (
    read_offset_index,
    read_time_index,
    read_transaction_index,
    write_offset_index,
    write_time_index,
    write_transaction_index,
)
from kafkalog.format.side_files.leader_epochs import read_leader_epochs, write_leader_epochs
from kafkalog.format.side_files.log_dir_files import read_clean_shutdown, write_clean_shutdown
from kafkalog.format.side_files.partition_metadata import read_topic_id, write_topic_id
from kafkalog.format.side_files.producer_snapshot import (
    read_producer_snapshot,
    write_producer_snapshot,
)
from kafkalog.format.side_files.properties import read_properties, write_properties
from tests.support.repository import Unpack


def offset_index(data: bytes, base_offset: int) -> bytes:
    index = read_offset_index(data, base_offset)
    return write_offset_index(index.entries, base_offset, index.zero_bytes)


def time_index(data: bytes, base_offset: int) -> bytes:
    index = read_time_index(data, base_offset)
    return write_time_index(index.entries, base_offset, index.zero_bytes)


def properties(text: str) -> str:
    found = read_properties(text)
    return write_properties(found.values, found.comments)


BINARY: dict[str, Callable[[bytes, int], bytes]] = {
    ".index": offset_index,
    ".timeindex": time_index,
    ".txnindex": lambda data, _: write_transaction_index(read_transaction_index(data)),
    ".snapshot": lambda data, _: write_producer_snapshot(read_producer_snapshot(data)),
}
TEXT: dict[str, Callable[[str], str]] = {
    "leader-epoch-checkpoint": lambda text: write_leader_epochs(read_leader_epochs(text)),
    "partition.metadata": lambda text: write_topic_id(read_topic_id(text)),
    "meta.properties": properties,
    ".kafka_cleanshutdown": lambda text: write_clean_shutdown(read_clean_shutdown(text)),
    **dict.fromkeys(
        (
            "log-start-offset-checkpoint",
            "replication-offset-checkpoint",
            "recovery-point-offset-checkpoint",
            "cleaner-offset-checkpoint",
        ),
        lambda text: write_offset_checkpoint(read_offset_checkpoint(text)),
    ),
}


def kind_of(path: Path) -> str | None:
    name = path.name
    if name in TEXT:
        return name
    suffix = next((part for part in path.suffixes if part in BINARY), None)
    return suffix if name[:20].isdigit() else None


def written_back(path: Path, kind: str) -> bytes:
    data = path.read_bytes()
    if kind in BINARY:
        return BINARY[kind](data, int(path.name[:20]))
    return TEXT[kind](data.decode()).encode()


def side_files(logs: Path) -> list[tuple[Path, str]]:
    # A file of no byte is one that the broker has not written to yet.
    return [
        (path, kind)
        for path in sorted(logs.rglob("*"))
        if path.is_file() and path.stat().st_size and (kind := kind_of(path))
    ]


SETS = {
    "kafka08": {".index", *list(TEXT)[-3:]} - {"cleaner-offset-checkpoint"},
    "kafka010": {".index", ".timeindex", "meta.properties"},
    "kafka39zk": {*BINARY, "leader-epoch-checkpoint", "partition.metadata", "meta.properties"},
    "kafka44": {*BINARY, *TEXT},
    "tiered43": {".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint"},
}


@pytest.mark.parametrize("name", SETS)
def test_side_files_are_read_to_the_byte(name: str, unpacked: Unpack) -> None:
    files = side_files(unpacked(f"{name}.logs"))
    changed = [str(path) for path, kind in files if written_back(path, kind) != path.read_bytes()]
    assert changed == []
    assert SETS[name] <= Counter(kind for _, kind in files).keys()


# What was done to the side files of each damaged copy: golden/recovery.json, "damage". Garbage of
# whole entries (index-garbage, index-garbage-active) is read as such.
SPOILT = {
    "timeindex-garbage": ["00000000000000000000.timeindex"],
    "snapshot-garbage": ["00000000000000002663.snapshot"],
    "epoch-checkpoint-garbage": ["leader-epoch-checkpoint"],
}


def test_bad_side_files_are_one_typed_error_and_all_others_are_read(unpacked: Unpack) -> None:
    spoilt: dict[str, list[str]] = {}
    for path, kind in side_files(unpacked("unclean.logs")):
        try:
            assert written_back(path, kind) == path.read_bytes()
        except CorruptDataError:
            parts = path.parts
            variant = parts[parts.index("variants") + 1]
            spoilt.setdefault(variant, []).append(path.name)
    assert spoilt == SPOILT
