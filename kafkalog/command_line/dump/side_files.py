"""The files beside logs, line by line: indexes, producer snapshots, checkpoints."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import islice

from kafkalog.errors import CorruptDataError
from kafkalog.format.secret_configs import shown_config
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from kafkalog.format.side_files.indexes import offset_entries, time_entries, transaction_entries
from kafkalog.format.side_files.leader_epochs import read_leader_epochs
from kafkalog.format.side_files.log_dir_files import read_clean_shutdown
from kafkalog.format.side_files.partition_metadata import read_topic_id
from kafkalog.format.side_files.producer_snapshot import ProducerEntry, producer_entries
from kafkalog.format.side_files.properties import read_properties
from kafkalog.storage.files.files import read_bytes
from kafkalog.storage.names import CLEANER_OFFSETS, LOG_STARTS, RECOVERY_POINTS, REPLICATION_OFFSETS
from kafkalog.words import printable

FileFields = dict[str, object]

_SUFFIX = re.compile(
    r"(?P<base_offset>[0-9]{20})\.(?P<kind>index|timeindex|txnindex|snapshot)"
    r"(\.(deleted|cleaned|swap))?"
)
# kafka-dump-log prints nothing for these where they are empty.
_WITHOUT_WORDS = ("timeindex", "txnindex", "snapshot")
_LINES_AT_A_TIME = 10_000
_SEQUENCES = 2**31


def _offset_index(data: bytes, base_offset: int) -> Iterator[FileFields]:
    for entry in offset_entries(data, base_offset):
        yield {"offset": entry.offset, "position": entry.position}


def _time_index(data: bytes, base_offset: int) -> Iterator[FileFields]:
    for entry in time_entries(data, base_offset):
        yield {"timestamp": entry.timestamp_ms, "offset": entry.offset}


def _transaction_index(data: bytes, _: int) -> Iterator[FileFields]:
    for entry in transaction_entries(data):
        yield {
            "version": 0,
            "producerId": entry.producer_id,
            "firstOffset": entry.first_offset,
            "lastOffset": entry.last_offset,
            "lastStableOffset": entry.last_stable_offset,
        }


def _producer_snapshot(data: bytes, _: int) -> Iterator[FileFields]:
    for entry in producer_entries(data):
        first = entry.transaction_first_offset
        fields: FileFields = {
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": None if first < 0 else first,
            "lastTimestamp": entry.timestamp_ms,
        }
        yield fields | (_last_batch(entry) if entry.last_offset >= 0 else {})


def _last_batch(entry: ProducerEntry) -> FileFields:
    return {
        "firstSequence": (entry.last_sequence - entry.offset_delta) % _SEQUENCES,
        "lastSequence": entry.last_sequence,
        "lastOffset": entry.last_offset,
        "offsetDelta": entry.offset_delta,
        "timestamp": entry.timestamp_ms,
    }


def _leader_epochs(text: str) -> Iterator[FileFields]:
    for entry in read_leader_epochs(text):
        yield {"epoch": entry.epoch, "startOffset": entry.start_offset}


def _offset_checkpoint(text: str) -> Iterator[FileFields]:
    for (topic, partition), offset in read_offset_checkpoint(text).items():
        yield {"topic": topic, "partition": partition, "offset": offset}


def _partition_metadata(text: str) -> Iterator[FileFields]:
    yield {"topicId": read_topic_id(text)}


def _properties(text: str) -> Iterator[FileFields]:
    found = read_properties(text).values
    yield {"properties": {name: shown_config(name, value) for name, value in found.items()}}


def _clean_shutdown(text: str) -> Iterator[FileFields]:
    yield {"brokerEpoch": read_clean_shutdown(text)}


_BINARY: dict[str, Callable[[bytes, int], Iterator[FileFields]]] = {
    "index": _offset_index,
    "timeindex": _time_index,
    "txnindex": _transaction_index,
    "snapshot": _producer_snapshot,
}
_TEXT: dict[str, Callable[[str], Iterator[FileFields]]] = {
    "leader-epoch-checkpoint": _leader_epochs,
    "partition.metadata": _partition_metadata,
    "meta.properties": _properties,
    ".kafka_cleanshutdown": _clean_shutdown,
    **dict.fromkeys(
        (LOG_STARTS, REPLICATION_OFFSETS, RECOVERY_POINTS, CLEANER_OFFSETS), _offset_checkpoint
    ),
}
KNOWN = (*(f".{kind}" for kind in _BINARY), *_TEXT)


def side_file_kind(path: str) -> str | None:
    """Return the kind of a file beside logs by its name, None for an unknown name."""
    name = os.path.basename(path)
    match = _SUFFIX.fullmatch(name)
    return match["kind"] if match else (name if name in _TEXT else None)


def rows(path: str) -> Iterator[FileFields]:
    """Yield the contents of the file. Raises CorruptDataError with the file's path."""
    data, name = read_bytes(path), os.path.basename(path)
    match = _SUFFIX.fullmatch(name)
    try:
        if match is not None:
            yield from _BINARY[match["kind"]](data, int(match["base_offset"]))
        else:
            yield from _TEXT[name](data.decode("utf-8", errors="replace"))
    except CorruptDataError as error:
        raise error.located(path, error.position, None) from error


def texts(path: str, *, as_json: bool) -> Iterator[bytes]:
    """Yield the lines of the file, some thousands at a time. Raises as `rows` does."""
    kind = side_file_kind(path)
    found = rows(path)
    if as_json:
        lines = (json.dumps({"type": kind, "file": path, **fields}) for fields in found)
    else:
        lines = (printable(" ".join(_words(fields))) for fields in found)
    is_empty = True
    while some := list(islice(lines, _LINES_AT_A_TIME)):
        is_empty = False
        yield "".join(f"{line}\n" for line in some).encode()
    if is_empty and not as_json and kind not in _WITHOUT_WORDS:
        yield f"{printable(path)} is empty.\n".encode()


def _words(fields: FileFields) -> Iterator[str]:
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from _words(value)
        elif name == "currentTxnFirstOffset":
            yield f"{name}: OptionalLong{'.empty' if value is None else f'[{value}]'}"
        else:
            yield f"{name}: {value}"
