"""The log of a partition: its segments, and the facts about it in its log directory."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar, overload

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.format.side_files.partition_metadata import read_topic_id
from kafkalog.storage.files.files import read_text
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.words import counted

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment's log file. `base_offset` is None if the name does not contain it; `input_path` is
    the user's path under which the file was found. `is_cut` is True in tiered storage, where a file
    may continue with offsets of the next segment: only those below count."""

    path: str
    base_offset: int | None
    next_base_offset: int | None
    size: int
    input_path: str
    is_cut: bool = False


class SoundFile(NamedTuple):
    """A log file of this size that was read to its end without any finding, and what it has."""

    size: int
    batches: int
    records: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int | None


class MadeOnRequest(Sequence[_Item]):
    """A sequence whose items are made on request. It equals a tuple of them."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (tuple, MadeOnRequest)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class ListedSegments(MadeOnRequest[SegmentFile]):
    """The live segments in a partition's directory, by their offsets, as columns: there may be
    millions, and a SegmentFile takes twenty times the memory. `end` is the base offset of the
    segment after the last one, None without one."""

    __slots__ = ("base_offsets", "directory", "end", "input_path", "sizes")

    def __init__(
        self,
        directory: str,
        base_offsets: array[int],
        sizes: array[int],
        input_path: str,
        end: int | None = None,
    ) -> None:
        self.directory = directory
        self.base_offsets = base_offsets
        self.sizes = sizes
        self.input_path = input_path
        self.end = end

    def __len__(self) -> int:
        return len(self.base_offsets)

    @overload
    def __getitem__(self, index: int) -> SegmentFile: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[SegmentFile]: ...

    def __getitem__(self, index: int | slice) -> SegmentFile | Sequence[SegmentFile]:
        numbers = range(len(self))[index]
        if isinstance(numbers, int):
            return self._segment(numbers)
        if numbers.step != 1:
            return tuple(map(self._segment, numbers))
        if len(numbers) == len(self):
            return self
        within = slice(numbers.start, numbers.stop)
        end = self._base_offset(numbers.stop) if numbers else None
        return ListedSegments(
            self.directory, self.base_offsets[within], self.sizes[within], self.input_path, end
        )

    def __iter__(self) -> Iterator[SegmentFile]:
        return map(self._segment, range(len(self)))

    def _segment(self, number: int) -> SegmentFile:
        base_offset = self.base_offsets[number]
        return SegmentFile(
            os.path.join(self.directory, f"{base_offset:020d}.log"),
            base_offset,
            self._base_offset(number + 1),
            self.sizes[number],
            self.input_path,
        )

    def _base_offset(self, number: int) -> int | None:
        return self.base_offsets[number] if number < len(self) else self.end


def segment_sizes(segments: Sequence[SegmentFile]) -> Sequence[int]:
    """Return the sizes of segments."""
    if isinstance(segments, ListedSegments):
        return segments.sizes
    return [segment.size for segment in segments]


def bytes_in(logs: Iterable[PartitionLog]) -> int:
    """Return the size of all log files of the logs."""
    return sum(sum(segment_sizes(log.segments)) for log in logs)


def found_words(logs: Sequence[PartitionLog]) -> str:
    """Return how much the logs have that a run is about."""
    segments = counted(sum(len(log.segments) for log in logs), "segment")
    partitions, size = counted(len(logs), "partition"), counted(bytes_in(logs), "byte")
    return f"found {segments} of {partitions}, {size}"


def segment_base_offsets(segments: Sequence[SegmentFile]) -> Sequence[int]:
    """Return the base offsets of segments, 0 for a file whose name has none."""
    if isinstance(segments, ListedSegments):
        return segments.base_offsets
    return [segment.base_offset or 0 for segment in segments]


def segment_directories(segments: Sequence[SegmentFile]) -> set[str]:
    """Return the directories that the files of segments are in."""
    if isinstance(segments, ListedSegments):
        return {segments.directory} if segments else set()
    return {os.path.dirname(segment.path) for segment in segments}


@dataclass(frozen=True, slots=True)
class LogDir:
    """The files at the top of a log directory; all fields are empty without them.

    `has_cleaner_checkpoint` is False where cleaner-offset-checkpoint is missing or damaged: which
    logs were cleaned is not known then. A broker creates the file when it starts.
    """

    path: str
    cluster_id: str | None = None
    broker_id: int | None = None
    is_clean_shutdown: bool = False
    log_starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    high_watermarks: Mapping[TopicPartition, int] = field(default_factory=dict)
    recovery_points: Mapping[TopicPartition, int] = field(default_factory=dict)
    cleaner_checkpoints: Mapping[TopicPartition, int] = field(default_factory=dict)
    has_cleaner_checkpoint: bool = False


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """The segments of one partition in one place, in the order of their offsets.

    `topic` and `partition` are None for a file in a directory of another name. `is_live` is False
    for a directory that a broker would not serve, and for files given one by one; `is_named` is
    True for a path that was given itself rather than found in a log directory. `tiered_topic_id` is
    the topic's id if segments are in tiered storage, else None. `is_former` is True for a log of a
    topic whose name another topic has now; `topic` is then its whole name, TOPIC@ID (docs/format.md
    F925). `sound_files` are those that need not be read again, by path.
    """

    topic: str | None
    partition: int | None
    path: str
    log_dir: LogDir
    segments: Sequence[SegmentFile]
    is_live: bool = True
    is_named: bool = False
    tiered_topic_id: str | None = None
    is_former: bool = False
    sound_files: Mapping[str, SoundFile] = field(default_factory=dict, compare=False)

    def known_sound(self, segment: SegmentFile, size: int) -> SoundFile | None:
        """Return what was found in a segment's file if it need not be read again: it has the same
        size now."""
        known = self.sound_files.get(segment.path)
        return known if known is not None and known.size == size else None

    @property
    def name(self) -> str:
        """TOPIC-PARTITION; of a log that is outside such a directory, that directory's name."""
        if self.topic is None:
            return os.path.basename(self.path)
        return f"{self.topic}-{self.partition}"

    @property
    def input_path(self) -> str:
        """The user's path under which the log was found."""
        if self.segments:
            return self.segments[0].input_path
        return self.path if self.is_named else self.log_dir.path

    @property
    def given_files(self) -> set[str]:
        """The files by whose own paths the log was given; none for a whole directory."""
        if isinstance(self.segments, ListedSegments):
            return set()
        return {segment.path for segment in self.segments if segment.input_path == segment.path}

    @property
    def topic_partition(self) -> TopicPartition | None:
        if self.topic is None or self.partition is None:
            return None
        return self.topic, self.partition

    @property
    def log_start(self) -> int:
        """The log start offset by the checkpoint, 0 without one."""
        return self._checkpoint(self.log_dir.log_starts)

    @property
    def recovery_point(self) -> int:
        """The offset up to which the log was flushed, by the checkpoint, 0 without one."""
        return self._checkpoint(self.log_dir.recovery_points)

    def knowing(self, sound: Mapping[str, SoundFile]) -> PartitionLog:
        """Return the log with those of its files that are known to be sound, by path."""
        paths = [segment.path for segment in self.segments if segment.path in sound]
        return replace(self, sound_files={path: sound[path] for path in paths})

    def _checkpoint(self, offsets: Mapping[TopicPartition, int]) -> int:
        """Return the log's offset in a checkpoint; brokers do not look there for the cluster's
        metadata (docs/format.md F1180)."""
        key = self.topic_partition
        return 0 if key is None or self.topic == CLUSTER_METADATA else offsets.get(key, 0)

    @property
    def is_recovered_at_start(self) -> bool:
        """Whether a broker that starts recovers what is not flushed: after an unclean stop, and of
        the cluster's metadata always (docs/format.md F121 and F920)."""
        return not self.log_dir.is_clean_shutdown or self.topic == CLUSTER_METADATA

    @property
    def is_compacted(self) -> bool:
        """Whether the cleaner has been in the log, by its checkpoint."""
        return self.topic_partition in self.log_dir.cleaner_checkpoints

    @property
    def is_trimmed(self) -> bool:
        """Whether a clean stop has left nothing in the indexes but their entries.

        Brokers do not close the log of the cluster's metadata in this way, nor a deleted one.
        """
        return self.log_dir.is_clean_shutdown and self.is_live and self.topic != CLUSTER_METADATA


def is_selected(
    topic: str | None, partition: int | None, topics: Sequence[str], partitions: Sequence[int]
) -> bool:
    """Return whether the topics and the partition numbers include a partition; empty ones include
    all."""
    return (not topics or topic in topics) and (not partitions or partition in partitions)


def those_of(
    found: Sequence[PartitionLog], topics: Sequence[str] = (), partitions: Sequence[int] = ()
) -> list[PartitionLog]:
    """Return the logs of these topics and partitions, all if none are given."""
    return [log for log in found if is_selected(log.topic, log.partition, topics, partitions)]


def log_columns(log: PartitionLog) -> dict[str, object]:
    """Return the columns that identify the log of a row, as tables and views name them."""
    return {
        "cluster_id": log.log_dir.cluster_id,
        "broker_id": log.log_dir.broker_id,
        "input_path": log.input_path,
        "topic": log.topic,
        "partition": log.partition,
    }


def with_own_checkpoints(log: PartitionLog) -> PartitionLog:
    """Return the log with only its own entries in the checkpoints: small enough for a task."""
    log_dir, key = log.log_dir, log.topic_partition

    def own(offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        return {key: offsets[key]} if key is not None and key in offsets else {}

    own_log_dir = replace(
        log_dir,
        log_starts=own(log_dir.log_starts),
        high_watermarks=own(log_dir.high_watermarks),
        recovery_points=own(log_dir.recovery_points),
        cleaner_checkpoints=own(log_dir.cleaner_checkpoints),
    )
    return replace(log, log_dir=own_log_dir)


def without_checkpoints(log_dir: LogDir) -> LogDir:
    """Return the log directory without checkpoints, for a log to which they do not apply."""
    return replace(
        log_dir,
        log_starts={},
        high_watermarks={},
        recovery_points={},
        cleaner_checkpoints={},
        has_cleaner_checkpoint=False,
    )


def topic_id(log: PartitionLog) -> str | None:
    """Return the topic's id from the partition's metadata; None if the file is missing or
    damaged."""
    if log.tiered_topic_id is not None:
        return log.tiered_topic_id
    try:
        text = read_text(os.path.join(log.path, PARTITION_METADATA))
        return None if text is None else read_topic_id(text)
    except CorruptDataError:
        return None
