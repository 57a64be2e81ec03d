"""Segments in tiered storage: their names, and which of several with the same offsets count. Rules:
docs/remote.md F555 to F558.

Two layouts are known: that of Kafka's own LocalTieredStorage, `<topic>-<partition>-<topic id>/`,
and that of Aiven's plug-in, `<topic>-<topic id>/<partition>/`. In both a segment is
`<base offset>-<segment id>.log`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.leader_epochs import EpochStart, read_leader_epochs
from kafkalog.format.side_files.tiered_manifest import read_tiered_manifest
from kafkalog.log_lines import logger
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import Directories, entries_left, read_text
from kafkalog.storage.files.requests_at_once import answers
from kafkalog.storage.files.tiered_chunks import TIERED_MANIFEST as MANIFEST

# Of 16 bytes in base64 the last character has two bits, in four letters.
_ID = r"(?P<id>[A-Za-z0-9_-]{21}[AQgw])"
_TOPIC = r"(?P<topic>[a-zA-Z0-9._-]{1,249})"
_PARTITION_DIR = re.compile(rf"{_TOPIC}-(?P<partition>[0-9]{{1,10}})-{_ID}")
_TOPIC_DIR = re.compile(rf"{_TOPIC}-{_ID}")
_PARTITION = re.compile(r"[0-9]{1,10}")
_OBJECT = re.compile(rf"(?P<base_offset>[0-9]{{20}})-{_ID}\.(?P<ending>[a-z_-]+)")
_LOG = re.compile(rf"(?P<stem>(?P<base_offset>[0-9]{{20}})-{_ID})\.log")
_BESIDE = re.compile(
    rf"[0-9]{{20}}-{_ID}\.(?:index|timeindex|txnindex|snapshot|leader_epoch_checkpoint|indexes"
    r"|rsm-manifest)"
)
# Without these an upload is not complete; leader epochs are in them.
_EPOCHS = ".leader_epoch_checkpoint"

_logger = logger(__name__)


@dataclass(frozen=True, slots=True)
class TieredSegment:
    """A segment's log file; `last_epoch` is the leader epoch of its last record."""

    path: str
    base_offset: int
    size: int
    last_epoch: int


@dataclass(frozen=True, slots=True)
class TieredPartition:
    """The tiered storage of a partition: the segments that count, in order. Each holds the log from
    its base offset up to the next one's, and perhaps more."""

    topic: str
    partition: int
    topic_id: str
    path: str
    segments: tuple[TieredSegment, ...]


def tiered_partitions(
    directories: Directories, path: str, entries: Sequence[Entry]
) -> list[TieredPartition]:
    """Return the partitions of tiered storage in a directory, or the one that it belongs to.

    Raises CorruptDataError for manifests and leader epochs that cannot be read.
    """
    found = [
        place
        for place in _places(directories, path, entries)
        if any(_LOG.fullmatch(entry.name) for entry in place.entries)
    ]
    return [
        TieredPartition(
            place.topic,
            place.partition,
            place.topic_id,
            place.path,
            counting_segments(_whole_segments(place)),
        )
        for place in found
    ]


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """What is stored of a segment, whole or not: its files by their endings, such as `log`."""

    topic: str
    partition: int
    topic_id: str
    segment_id: str
    base_offset: int
    path: str
    files: Mapping[str, Entry]


def stored_segments(
    directories: Directories, path: str, entries: Sequence[Entry]
) -> list[StoredSegment]:
    """Return all that is in the tiered storage of a directory, or in one directly below it."""
    places = list(_places(directories, path, entries))
    for entry in () if places else entries:
        if entry.is_directory:
            places += _places(
                directories, entry.path, entries_left(entry.path, directories.entries)
            )
    found: list[StoredSegment] = []
    for place in places:
        files: dict[tuple[str, str], dict[str, Entry]] = {}
        for entry in place.entries:
            if name := _OBJECT.fullmatch(entry.name):
                files.setdefault((name["base_offset"], name["id"]), {})[name["ending"]] = entry
        found += [
            StoredSegment(
                *(place.topic, place.partition, place.topic_id, segment_id, int(base_offset)),
                *(place.path, own),
            )
            for (base_offset, segment_id), own in files.items()
        ]
    return found


def tiered_partition_name(path: str) -> tuple[str, int, str] | None:
    """Return topic, partition and topic id by the names of a directory of tiered storage and of
    the one that it is in; None for every other directory."""
    parent, name = os.path.split(path)
    topic = _TOPIC_DIR.fullmatch(os.path.basename(parent))
    if topic is not None and _PARTITION.fullmatch(name):
        return topic["topic"], int(name), topic["id"]
    if partition := _PARTITION_DIR.fullmatch(name):
        return partition["topic"], int(partition["partition"]), partition["id"]
    return None


def is_beside_tiered_log(file_name: str) -> bool:
    """Return whether a plug-in puts a file of this name beside a segment's log."""
    return _BESIDE.fullmatch(file_name) is not None


def counting_segments(segments: Iterable[TieredSegment]) -> tuple[TieredSegment, ...]:
    """Return the segments that the log of a partition consists of, among those uploaded by any
    leaders and perhaps twice.

    Where two overlap, the one whose last record is of the later leader epoch counts from its base
    offset on: a leader keeps what belongs to the log of earlier leaders. What is above it and of an
    earlier epoch was truncated, or is a duplicate.
    """
    chosen: list[TieredSegment] = []
    # The largest of those that begin together is looked at first.
    order = sorted(segments, key=lambda each: (each.last_epoch, each.base_offset, each.size))
    for segment in reversed(order):
        if not chosen or segment.base_offset < chosen[-1].base_offset:
            chosen.append(segment)
    return tuple(reversed(chosen))


@dataclass(frozen=True, slots=True)
class _Place:
    topic: str
    partition: int
    topic_id: str
    path: str
    entries: Sequence[Entry]


def _places(directories: Directories, path: str, entries: Sequence[Entry]) -> Iterator[_Place]:
    """Yield the directories that are partitions' by their names: this one, or those in it."""
    parent, name = os.path.split(path)
    topic = _TOPIC_DIR.fullmatch(os.path.basename(parent))
    if topic is not None and _PARTITION.fullmatch(name):
        yield _Place(topic["topic"], int(name), topic["id"], path, entries)
        return
    if partition := _PARTITION_DIR.fullmatch(name):
        yield _Place(
            partition["topic"], int(partition["partition"]), partition["id"], path, entries
        )
    if topic := _TOPIC_DIR.fullmatch(name):
        yield from _partitions_of(directories, topic, entries)
    for entry in entries:
        if not entry.is_directory:
            continue
        if partition := _PARTITION_DIR.fullmatch(entry.name):
            found = entries_left(entry.path, directories.entries)
            number = int(partition["partition"])
            yield _Place(partition["topic"], number, partition["id"], entry.path, found)
        if topic := _TOPIC_DIR.fullmatch(entry.name):
            yield from _partitions_of(
                directories, topic, entries_left(entry.path, directories.entries)
            )


def _partitions_of(
    directories: Directories, topic: re.Match[str], entries: Sequence[Entry]
) -> Iterator[_Place]:
    for entry in entries:
        if entry.is_directory and _PARTITION.fullmatch(entry.name):
            found = entries_left(entry.path, directories.entries)
            yield _Place(topic["topic"], int(entry.name), topic["id"], entry.path, found)


def _whole_segments(place: _Place) -> list[TieredSegment]:
    names = {entry.name for entry in place.entries}
    whole: list[tuple[Entry, re.Match[str], str]] = []
    for entry in place.entries:
        log = _LOG.fullmatch(entry.name)
        if log is None or int(log["base_offset"]) >= 2**63:
            continue
        beside = [ending for ending in (_EPOCHS, MANIFEST) if log["stem"] + ending in names]
        if beside:
            whole.append((entry, log, os.path.join(place.path, log["stem"] + beside[0])))
        else:
            _logger.warning(
                "%s is left out: without its leader epochs (%s or %s) its upload is not complete, "
                "or its deletion has begun",
                entry.path,
                _EPOCHS,
                MANIFEST,
            )
    epochs = answers(_last_epoch, [path for _, _, path in whole], str)
    return [
        TieredSegment(entry.path, int(log["base_offset"]), entry.size, last_epoch)
        for (entry, log, _), last_epoch in zip(whole, epochs, strict=True)
        if last_epoch is not None
    ]


def _last_epoch(path: str) -> int | None:
    """Return the leader epoch of a segment's last record; None if the segment was deleted just
    now."""
    try:
        text = read_text(path)
        if text is None:
            return None
        epochs: Sequence[EpochStart]
        if path.endswith(MANIFEST):
            epochs = read_tiered_manifest(text).leader_epochs
        else:
            epochs = read_leader_epochs(text)
    except CorruptDataError as error:
        raise error.located(path, error.position, None) from error
    return max((epoch.epoch for epoch in epochs), default=-1)
