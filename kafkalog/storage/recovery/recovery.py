"""What a broker does to a partition's directory when it starts: a plan, nothing is changed.

Follows the loader of Apache Kafka 4.x pass by pass. Rules: docs/format.md F117 to F124.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from kafkalog.errors import CorruptDataError
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.format.side_files.indexes import (
    OFFSET_ENTRY,
    TIME_ENTRY,
    TRANSACTION_ENTRY,
    read_transaction_index,
    whole_entries,
)
from kafkalog.format.side_files.leader_epochs import (
    EpochStart,
    epochs_refusal,
    read_leader_epochs,
    without_end,
    without_start,
)
from kafkalog.storage.files.files import list_directory, read_bytes, read_text
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import LEADER_EPOCHS, PartitionLog
from kafkalog.storage.recovery.framing import frames
from kafkalog.storage.recovery.loaded_segment import LoadedSegment, read_index_entries
from kafkalog.storage.recovery.producer_snapshots import DAY_MS, ProducerStateLoader, SnapshotFiles
from kafkalog.storage.recovery.producer_state import BrokerStartError, refuse_unreadable
from kafkalog.storage.recovery.segment_recovery import (
    LARGEST_RELATIVE_OFFSET,
    InvalidOffsetError,
    OffsetOverflowError,
    SegmentRecovery,
    recover_segment,
)
from kafkalog.storage.recovery.temporary_files import (
    REFUSED_NAME,
    SWAP,
    dropped_files,
    finished_swaps,
    is_replaced,
    odd_base_offset,
    refused_names,
)

_INDEXES = (".index", ".timeindex", ".txnindex")
_SEGMENT_FILES = (".log", *_INDEXES)
_DIGITS = re.compile("[0-9]{20}")
_DELETED = "-delete"
IS_DIRECTORY = "it is a directory, where a broker opens a file"


@dataclass(frozen=True, slots=True)
class RecoverySettings:
    """What a broker goes by besides the partition's directory.

    Offsets are those of the log directory's checkpoints, 0 where they have none. `reads_wrappers`
    is whether it reads compressed batches of formats 0 and 1 at the places it looks for (F1392),
    `needs_snapshot` whether it ends without the newest snapshot of the metadata (F1406).
    """

    is_clean_shutdown: bool
    recovery_point: int = 0
    log_start_offset: int = 0
    now_ms: int = 0
    index_interval_bytes: int = INDEX_INTERVAL_BYTES
    producer_id_expiration_ms: int = DAY_MS
    reads_wrappers: bool = True
    needs_snapshot: bool = False

    @classmethod
    def of(
        cls,
        log: PartitionLog,
        now_ms: int,
        *,
        is_clean_shutdown: bool | None = None,
        index_interval_bytes: int = INDEX_INTERVAL_BYTES,
        reads_wrappers: bool = True,
        needs_snapshot: bool = False,
    ) -> RecoverySettings:
        """Return what the checkpoints beside a log say; how the broker stopped is as found, or as
        given."""
        as_found = log.log_dir.is_clean_shutdown
        is_clean = as_found if is_clean_shutdown is None else is_clean_shutdown
        return cls(
            # Brokers recover this one at each start.
            is_clean and log.topic != CLUSTER_METADATA,
            log.recovery_point,
            log.log_start,
            now_ms,
            index_interval_bytes,
            reads_wrappers=reads_wrappers,
            needs_snapshot=needs_snapshot,
        )


@dataclass(frozen=True, slots=True)
class Cut:
    """A file that is cut at a position, and why; what lies after it is lost."""

    file: str
    position: int
    reason: str


@dataclass(slots=True)
class RecoveryPlan:
    """What becomes of a partition's directory.

    `replaced_segments` are those whose records are in a finished swap. `files` are names and sizes
    once the broker runs; None is a size that depends on the broker's settings. Where it would not
    start, `start_error` says why, and the rest is as far as it came; `ends_process` is False where
    that only takes the log directory offline (F966). A snapshot of the cluster's metadata has what
    lies below `kept_in_snapshot`.
    """

    log_start_offset: int = 0
    log_end_offset: int | None = None
    start_error: str | None = None
    ends_process: bool = True
    kept_in_snapshot: int = 0
    cuts: list[Cut] = field(default_factory=list)
    recovered_segments: list[int] = field(default_factory=list)
    deleted_segments: list[int] = field(default_factory=list)
    replaced_segments: list[int] = field(default_factory=list)
    deleted_snapshots: list[int] = field(default_factory=list)
    written_snapshots: list[int] = field(default_factory=list)
    leader_epochs: list[EpochStart] = field(default_factory=list)
    files: dict[str, int | None] = field(default_factory=dict)


def plan_recovery(directory: str, settings: RecoverySettings) -> RecoveryPlan:
    """Return the plan for a partition's directory at the broker's next start."""
    loader = _Loader(directory, settings)
    try:
        loader.load()
    except BrokerStartError as error:
        loader.plan.start_error = str(error)
        loader.plan.ends_process = error.ends_process
    loader.note_snapshots()
    return loader.plan


class _Loader:
    """Goes through the passes of a broker's loader, on names and sizes instead of files."""

    def __init__(self, directory: str, settings: RecoverySettings) -> None:
        self._settings = settings
        self._epochs_path = os.path.join(directory, LEADER_EPOCHS)
        # Of a directory marked for deletion a broker opens the segments, and looks for no end.
        self._is_deleted = directory.endswith(_DELETED)
        listed = list_directory(directory)
        entries = [entry for entry in listed if not entry.is_directory]
        # Directories with the names of files: a broker takes them for the files.
        self._folders = frozenset(entry.name for entry in listed if entry.is_directory)
        self.plan = RecoveryPlan(files={entry.name: entry.size for entry in entries})
        # Where the bytes are of a file that the broker would have renamed by now.
        self._paths = {entry.name: entry.path for entry in entries}
        self._segments: list[LoadedSegment] = []
        # Segments that are split off others, by the names of the files that they become.
        self._parts: dict[str, LoadedSegment] = {}
        self._snapshots = SnapshotFiles(
            {
                base_offset: entry.path
                for entry in listed
                if (base_offset := _offset_of(entry.name, ".snapshot")) is not None
            }
        )

    def load(self) -> None:
        """All passes. Raises BrokerStartError."""
        plan, settings = self.plan, self._settings
        self._refuse_names()
        self._read_leader_epochs()
        self._finish_swaps(self._drop_temporary_files())
        self._split_as_needed(self._load_segments)
        if self._is_deleted:
            return
        if not settings.is_clean_shutdown:
            self._split_as_needed(self._recover_unflushed)
        main = self._producer_loader()
        end_offset = self._log_end(main)
        plan.leader_epochs = without_end(plan.leader_epochs, end_offset)
        plan.leader_epochs = without_start(plan.leader_epochs, settings.log_start_offset)
        plan.log_start_offset = max(settings.log_start_offset, self._segments[0].base_offset)
        self._snapshots.remove_strays([segment.base_offset for segment in self._segments])
        main.rebuild(
            self._segments,
            plan.log_start_offset,
            end_offset,
            is_clean_shutdown=settings.is_clean_shutdown,
        )
        plan.log_end_offset = end_offset
        self._forget_sizes(self._segments[-1].base_offset)

    def note_snapshots(self) -> None:
        """Put into the plan what becomes of the snapshots."""
        plan, snapshots = self.plan, self._snapshots
        plan.deleted_snapshots = sorted(snapshots.removed)
        plan.written_snapshots = sorted(snapshots.taken)
        for offset in snapshots.removed:
            plan.files.pop(_name(offset, ".snapshot"), None)
        for offset in snapshots.taken:
            plan.files[_name(offset, ".snapshot")] = None

    def _split_as_needed(self, load: Callable[[], None]) -> None:
        """Run a pass again after each split of a segment whose offsets overflow. Rule: F971."""
        while True:
            try:
                load()
                return
            except OffsetOverflowError:
                self._split(self._recovered)

    def _split(self, segment: LoadedSegment) -> None:
        """Put segments in the place of one, each of which has as many of its batches as its index
        can hold."""
        begins: list[tuple[int, int]] = []
        with segment.opened() as file:
            for frame in frames(file):
                header = frame.header
                if not begins or header.last_offset - begins[-1][0] > LARGEST_RELATIVE_OFFSET:
                    begins.append((header.base_offset, frame.position))
        files, number = self.plan.files, self._place_of(segment)
        for kind in _SEGMENT_FILES:
            files.pop(_name(segment.base_offset, kind), None)
        self._snapshots.remove(segment.base_offset)
        ends = [*(position for _, position in begins[1:]), segment.size]
        parts = []
        for (base_offset, position), end in zip(begins, ends, strict=True):
            begin = (segment.begin or 0) + position
            part = LoadedSegment(base_offset, segment.path, end - position, [], begin)
            name = _name(base_offset, ".log")
            self._parts[name] = part
            self._paths[name] = segment.path
            files[name] = part.size
            files[_name(base_offset, ".index")] = files[_name(base_offset, ".timeindex")] = None
            parts.append(part)
        self._segments[number : number + 1] = parts
        self.plan.recovered_segments.clear()

    def _place_of(self, segment: LoadedSegment) -> int:
        """Return the number of a segment; of one that is being loaded, after all others."""
        bases = [each.base_offset for each in self._segments]
        return bisect_left(bases, segment.base_offset)

    def _refuse_names(self) -> None:
        refused = refused_names(self.plan.files)
        if refused:
            names = ", ".join(refused)
            raise BrokerStartError(f"{names}: {REFUSED_NAME}")

    def _read_leader_epochs(self) -> None:
        try:
            text = read_text(self._epochs_path) or ""
        except CorruptDataError as error:
            refuse_unreadable(error)
            raise BrokerStartError(f"{LEADER_EPOCHS}: {error}", ends_process=False) from error
        found = epochs_refusal(text)
        if found is not None:
            detail = f"{LEADER_EPOCHS}: {found.detail}"
            raise BrokerStartError(detail, ends_process=found.is_number or found.ends_process)
        with suppress(CorruptDataError):
            # Sorted as the broker's cache sorts them. What ends after the version has none.
            self.plan.leader_epochs = sorted(read_leader_epochs(text))

    def _drop_temporary_files(self) -> list[str]:
        """Drop what was on its way out or half cleaned; the names of finished swaps."""
        files = self.plan.files
        swaps = finished_swaps(files)
        for name in dropped_files(files):
            del files[name]
        return swaps

    def _finish_swaps(self, swaps: Sequence[str]) -> None:
        """Swapped files take the place of all files whose offsets they cover."""
        covered = []
        for name in swaps:
            base_offset = _offset_of(name, ".log.swap")
            if base_offset is not None:
                covered.append(self._opened(base_offset, suffix=".swap"))
        if covered:
            first = min(segment.base_offset for segment in covered)
            end = max(segment.next_offset() for segment in covered)
            for name in list(self.plan.files):
                if is_replaced(name, first, end):
                    del self.plan.files[name]
                    if name.endswith(".log") and f"{name}{SWAP}" not in swaps:
                        self.plan.replaced_segments.append(int(name[:20]))
                    if name.endswith(".snapshot"):
                        self._snapshots.remove(int(name[:20]))
        for name in swaps:
            final = name.removesuffix(".swap")
            self.plan.files[final] = self.plan.files.pop(name)
            self._paths[final] = self._paths[name]

    def _opened(self, base_offset: int, suffix: str = "") -> LoadedSegment:
        files, log, index = (
            self.plan.files,
            *(_name(base_offset, kind) + suffix for kind in (".log", ".index")),
        )
        try:
            data = read_bytes(self._paths[index]) if index in files else b""
        except CorruptDataError as error:
            refuse_unreadable(error)
            # One that is too large to be read here only shows where batches begin.
            data = b""
        entries = read_index_entries(data, base_offset)
        return LoadedSegment(
            *(base_offset, self._paths[log], files[log] or 0, entries),
            reads_wrappers=self._settings.reads_wrappers,
        )

    def _make_named(self) -> None:
        """Make the segments of logs whose names have an offset of fewer or more than 20 digits: a
        broker looks for the file of the usual name, and makes an empty one. Rule: F1185."""
        for name in list(self.plan.files):
            base_offset = odd_base_offset(name)
            usual = None if base_offset is None else _name(base_offset, ".log")
            if base_offset is not None and usual is not None and usual not in self.plan.files:
                self._parts[usual] = LoadedSegment(base_offset, self._paths[name], 0, [], 0)
                self._paths[usual] = self._paths[name]
                self.plan.files[usual] = 0

    def _load_segments(self) -> None:
        files = self.plan.files
        self._segments = []
        self._make_named()
        for name in sorted(files):
            kind = "." + name.rpartition(".")[2]
            base_offset = _offset_of(name, kind)
            if base_offset is None:
                continue
            if kind in _INDEXES and _name(base_offset, ".log") not in files:
                del files[name]
            if kind != ".log":
                continue
            segment = self._parts.get(name) or self._opened(base_offset)
            self._refuse_folders(base_offset, ".txnindex")
            index = _name(base_offset, ".index")
            has_index = index in files or index in self._folders
            files.setdefault(_name(base_offset, ".timeindex"), 0)
            if not has_index or self._has_bad_transaction_index(base_offset):
                try:
                    self._recover(segment)
                except InvalidOffsetError as error:
                    raise BrokerStartError(f"{name}: {error}") from error
            self._segments.append(segment)

    def _refuse_folders(self, base_offset: int, *kinds: str) -> None:
        """Refuse directories in the place of files that a broker opens. Rule: docs/format.md
        F1395."""
        for kind in kinds:
            name = _name(base_offset, kind)
            if name in self._folders:
                raise BrokerStartError(f"{name}: {IS_DIRECTORY}", ends_process=False)

    def _has_bad_transaction_index(self, base_offset: int) -> bool:
        name = _name(base_offset, ".txnindex")
        if name not in self.plan.files:
            return False
        try:
            data = read_bytes(self._paths[name])
            # Brokers pass over a part of an entry at the end.
            entries = read_transaction_index(whole_entries(data, TRANSACTION_ENTRY))
        except CorruptDataError as error:
            refuse_unreadable(error)
            raise BrokerStartError(f"{name}: {error}") from error
        return any(entry.last_offset < base_offset for entry in entries)

    def _producer_loader(self) -> ProducerStateLoader:
        return ProducerStateLoader(
            self._snapshots,
            now_ms=self._settings.now_ms,
            expiration_ms=self._settings.producer_id_expiration_ms,
        )

    def _recover(self, segment: LoadedSegment) -> SegmentRecovery:
        """Recover one segment. Raises InvalidOffsetError, the segment as it was, or
        BrokerStartError."""
        self._refuse_folders(segment.base_offset, ".index", ".timeindex")
        producers = self._producer_loader()
        producers.rebuild(
            self._segments,
            self._settings.log_start_offset,
            segment.base_offset,
            is_clean_shutdown=False,
        )
        self.plan.recovered_segments.append(segment.base_offset)
        self._recovered = segment
        with segment.opened() as file:
            found = recover_segment(
                file,
                segment.base_offset,
                producers.state,
                self.plan.leader_epochs,
                index_interval_bytes=self._settings.index_interval_bytes,
            )
        if found.producers_end is not None:
            producers.end_offset = found.producers_end
        producers.take_snapshot()
        segment.offset_entries = found.offset_entries
        self._note_index_sizes(found)
        if found.truncated_bytes:
            self._cut(segment, found.valid_bytes, found.stop or "")
        return found

    def _note_index_sizes(self, found: SegmentRecovery) -> None:
        files, base_offset = self.plan.files, found.base_offset
        files[_name(base_offset, ".index")] = len(found.offset_entries) * OFFSET_ENTRY.size
        files[_name(base_offset, ".timeindex")] = len(found.time_entries) * TIME_ENTRY.size
        if found.aborted or _name(base_offset, ".txnindex") in files:
            files[_name(base_offset, ".txnindex")] = None

    def _cut(self, segment: LoadedSegment, position: int, reason: str) -> None:
        name = _name(segment.base_offset, ".log")
        file = name if segment.begin is None else os.path.basename(segment.path)
        self.plan.cuts.append(Cut(file, (segment.begin or 0) + position, reason))
        self.plan.files[name] = segment.size = position

    def _recover_unflushed(self) -> None:
        floor = [
            segment.base_offset
            for segment in self._segments
            if segment.base_offset <= self._settings.recovery_point
        ]
        start = floor[-1] if floor else self._settings.recovery_point
        unflushed = [segment for segment in self._segments if segment.base_offset >= start]
        for number, segment in enumerate(unflushed):
            size = segment.size
            try:
                self._recover(segment)
            except InvalidOffsetError as error:
                segment.offset_entries = []
                position = segment.position_of(segment.base_offset)
                if position is not None:
                    self._cut(segment, position, f"offsets cannot be indexed: {error}")
            if segment.size < size:
                self._forget_sizes(segment.base_offset)
                self._delete(unflushed[number + 1 :])
                return

    def _forget_sizes(self, base_offset: int) -> None:
        """The indexes of the segment that is written to have room for more entries."""
        self._refuse_folders(base_offset, ".index", ".timeindex")
        for kind in (".index", ".timeindex"):
            self.plan.files[_name(base_offset, kind)] = None

    def _delete(self, segments: Sequence[LoadedSegment]) -> None:
        files = self.plan.files
        for segment in segments:
            self._segments.remove(segment)
            self.plan.deleted_segments.append(segment.base_offset)
            for kind in (*_SEGMENT_FILES, ".snapshot"):
                name = _name(segment.base_offset, kind)
                if kind == ".snapshot" and segment.base_offset not in self._snapshots.contents:
                    continue
                if name in files:
                    files[f"{name}.deleted"] = files[name]
                    del files[name]
            self._snapshots.remove(segment.base_offset)

    def _log_end(self, producers: ProducerStateLoader) -> int:
        start = self._settings.log_start_offset
        if self._segments:
            end_offset = self._segments[-1].next_offset()
            if end_offset >= start:
                return end_offset
            # Here, other than after a cut, no snapshot waits under another name.
            for offset in list(self._snapshots.contents):
                self._snapshots.remove(offset)
            self._delete(list(self._segments))
            self.plan.leader_epochs = []
            producers.end_offset = start
        self.plan.files[_name(start, ".log")] = 0
        self._segments.append(LoadedSegment(start, "", 0))
        return start


def _name(offset: int, kind: str) -> str:
    return f"{offset:020d}{kind}"


def _offset_of(name: str, kind: str) -> int | None:
    stem = name.removesuffix(kind)
    offset = int(stem) if stem != name and _DIGITS.fullmatch(stem) else -1
    return offset if 0 <= offset <= LARGEST_OFFSET else None
