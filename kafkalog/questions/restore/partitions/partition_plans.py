"""Where a partition is cut, from which copy, and what is open there. Rules: docs/restore.md F1041
to F1046.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.indexes import AbortedTransaction
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.format.side_files.producer_snapshot import ProducerEntry
from kafkalog.storage.partition_log import PartitionLog, bytes_in, with_own_checkpoints

# Markers so long before the moment can belong to a decision after it: clocks of brokers differ.
_CLOCKS_MS = 60_000
_FOUND_DAMAGE = 100

# The moment where a log is not cut.
LATEST_MS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a partition. `covered_ms` is the time up to which its node's disk was surely
    written when it was copied, None where no metadata log beside it says."""

    log: PartitionLog
    covered_ms: int | None


@dataclass(frozen=True, slots=True)
class LostBytes:
    """Bytes of the chosen copy that form no sound batch."""

    path: str
    position: int
    size: int
    reason: str


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of a transaction in a partition."""

    producer_id: int
    producer_epoch: int
    offset: int
    time_ms: int
    is_commit: bool


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction without a marker below the cut; `first_ms` is the time of its first batch that
    was seen."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    first_ms: int


class Piece(NamedTuple):
    """Bytes of a file, from one position up to another."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """The sound bytes of a segment below the cut, and whether they are the whole file of one."""

    base_offset: int
    pieces: tuple[Piece, ...]
    is_whole: bool
    max_ms: int
    next_offset: int

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return sum(each.end - each.start for each in self.pieces)

    @property
    def whole_path(self) -> str | None:
        """The log file that is kept as it is, None where parts of files are."""
        return self.pieces[0].path if self.is_whole else None


@dataclass(slots=True)
class PartitionPlan:
    """What of a partition is restored, from `directory` where one copy is enough. Offsets from
    `cut` up to `old_end` were in some copy, and are not used again. `is_by_producers` says that
    producers' times made the cut; `is_united` that batches of several copies make the log,
    `is_cleaned_beyond` that the cleaner of each copy has looked at records after the cut: what
    these superseded can be gone. The offsets from `tiered_from` up to `start` are in tiered storage
    alone, which was not given; those of `missing` are nowhere. In the copies the records before
    `deleted_to` were deleted by a client: at `deleted_ms`, after the moment, and are restored from
    `start` on; with None, at an unknown time. `cleaned_to` is the offset up to which the cleaner
    has come in this copy, by its checkpoint, `known_end` the highest end that a checkpoint of high
    watermarks has; `offsets` is how many are kept of a united log. There can be many plans in
    memory: none has the log of its copies, and tuples without an item are one object."""

    topic: str
    partition: int
    topic_id: str
    directory: str
    start: int
    cut: int
    old_end: int
    covered_ms: int | None
    last_ms: int = -1
    max_epoch: int = -1
    max_producer_id: int = -1
    records: int = 0
    bytes: int = 0
    is_by_producers: bool = False
    segments: tuple[SegmentPlan, ...] = ()
    epochs: tuple[EpochStart, ...] = ()
    lost: tuple[LostBytes, ...] = ()
    open: tuple[OpenTransaction, ...] = ()
    markers: tuple[Marker, ...] = ()
    producers: tuple[ProducerEntry, ...] = ()
    aborted: tuple[AbortedTransaction, ...] = ()
    producers_from: int = 0
    cleaned_to: int | None = None
    other_copies: tuple[str, ...] = ()
    is_united: bool = False
    is_cleaned_beyond: bool = False
    tiered_from: int | None = None
    missing: tuple[tuple[int, int], ...] = ()
    deleted_to: int | None = None
    deleted_ms: int | None = None
    known_end: int = 0
    offsets: int = 0

    @property
    def name(self) -> str:
        """TOPIC-PARTITION."""
        return f"{self.topic}-{self.partition}"

    @property
    def key(self) -> tuple[str, int]:
        """Topic and partition."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class PlanTask:
    """A partition to plan: its copies, the moment, whether its topic is compacted, and an offset
    that the cut is not above."""

    topic: str
    partition: int
    topic_id: str
    copies: Sequence[Copy]
    as_of_ms: int
    is_compacted: bool = False
    limit: int = LARGEST_OFFSET

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what another process gets: of the checkpoints only the partition's own entries."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values["copies"] = [
            replace(each, log=with_own_checkpoints(each.log)) for each in self.copies
        ]
        return PlanTask, (*values.values(),)

    @property
    def size(self) -> int:
        """Bytes of all copies."""
        return bytes_in(copy.log for copy in self.copies)
