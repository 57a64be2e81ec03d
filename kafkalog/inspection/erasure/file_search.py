"""The search of one log file for a person's records: where they are, and what was not searched.

It reads as `kafkalog find` does. Rules: docs/erasure.md F1108 to F1112.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import integers
from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow, Source
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.columns.records.record_columns import RecordColumns
from kafkalog.errors import CorruptDataError, UnsupportedFormatError
from kafkalog.format.batch_header import NO_VALUE, V2_HEADER_BYTES
from kafkalog.format.faults import Fault
from kafkalog.inspection.dump.record_search import SegmentSearch, searched_records
from kafkalog.inspection.erasure.identifiers import Identifier
from kafkalog.inspection.erasure.input_files import InputEntry
from kafkalog.inspection.erasure.plain_bytes import first_position, plain_needles
from kafkalog.inspection.erasure.record_matching import Decoder, RecordMatcher, everywhere
from kafkalog.inspection.erasure.sealed_identifiers import SealedIdentifiers, SealedMatcher
from kafkalog.messages.internal_records import read_internal_record
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.names import REMOTE_LOG_METADATA
from kafkalog.words import counted

_PLACES = ("offset", "timestampMs", "position", "key", "value")
# So many names of groups are kept of a file.
_MOST_NAMES = 1000
_NO_NUMBERS: LongArray = np.zeros(0, dtype=np.int64)
_NONE: BoolArray = np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is searched for: identifiers, those of legal holds, and decoders of values. A proof has
    both `sealed`, by their HMACs."""

    identifiers: Sequence[Identifier]
    held: Sequence[Identifier] = ()
    decoders: Sequence[Decoder] = ()
    sealed: SealedIdentifiers | None = None
    sealed_holds: SealedIdentifiers | None = None

    def matcher(self) -> RecordMatcher | SealedMatcher:
        """Return what finds the records."""
        if self.sealed is not None:
            return SealedMatcher(self.sealed, self.decoders)
        return RecordMatcher(self.identifiers, self.decoders)

    def holds(self) -> RecordMatcher | SealedMatcher | None:
        """Return what finds the records on legal hold; None if nothing is held."""
        if self.sealed_holds is not None:
            return SealedMatcher(self.sealed_holds, self.decoders)
        return RecordMatcher(self.held, self.decoders) if self.held else None


@dataclass(frozen=True, slots=True)
class Hits:
    """The records of a file that are a person's, as columns: `positions` are those of their
    batches. A tombstone has the value size -1; `horizons` are the times, in milliseconds, from
    which the cleaner may remove one, -1 where that is not known; `keys` are hashes of keys."""

    positions: LongArray = field(default_factory=lambda: _NO_NUMBERS)
    offsets: LongArray = field(default_factory=lambda: _NO_NUMBERS)
    timestamps: LongArray = field(default_factory=lambda: _NO_NUMBERS)
    value_sizes: LongArray = field(default_factory=lambda: _NO_NUMBERS)
    horizons: LongArray = field(default_factory=lambda: _NO_NUMBERS)
    keys: LongArray = field(default_factory=lambda: _NO_NUMBERS)
    held: BoolArray = field(default_factory=lambda: _NONE)

    def __len__(self) -> int:
        return len(self.offsets)

    @classmethod
    def joined(cls, parts: Sequence[Hits]) -> Hits:
        """Return several as one."""
        if not parts:
            return cls()
        names = ("positions", "offsets", "timestamps", "value_sizes", "horizons", "keys", "held")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @property
    def erased(self) -> BoolArray:
        """Which are to be removed: all but those on legal hold."""
        erased: BoolArray = ~self.held
        return erased

    @property
    def tombstones(self) -> BoolArray:
        tombstones: BoolArray = self.value_sizes == NO_VALUE
        return tombstones

    def by_batch(self) -> Mapping[int, frozenset[int]]:
        """Return the offsets to be removed, by the positions of their batches in ascending
        order."""
        found: dict[int, set[int]] = {}
        chosen = self.erased
        pairs = zip(self.positions[chosen].tolist(), self.offsets[chosen].tolist(), strict=True)
        for position, offset in sorted(pairs):
            found.setdefault(position, set()).add(offset)
        return {position: frozenset(offsets) for position, offsets in found.items()}


@dataclass(frozen=True, slots=True)
class Unsearched:
    """Bytes of a file that were not searched, and why; `trace` is the position where the plain
    bytes of an identifier first are in them. Of several `ranges` it is the first one's reason."""

    position: int
    size: int
    reason: str
    first_offset: int | None = None
    trace: int | None = None
    ranges: int = 1

    def joined(self, following: Unsearched) -> Unsearched:
        """Return these bytes with those that follow them."""
        trace = following.trace if self.trace is None else self.trace
        size, ranges = self.size + following.size, self.ranges + following.ranges
        return replace(self, size=size, trace=trace, ranges=ranges)

    def words(self) -> str:
        """Return a line about them."""
        ranges = "" if self.ranges == 1 else f" in {self.ranges} ranges, the first"
        return f"position {self.position}, {counted(self.size, 'byte')}{ranges}: {self.why}"

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self.position + self.size

    @property
    def why(self) -> str:
        """The reason, and where an identifier's bytes are."""
        return self.reason if self.trace is None else f"{self.reason}; {trace_words(self.trace)}"


@dataclass(frozen=True, slots=True)
class FileSearch:
    """What was searched in a file, and what was found. `undecoded` values could not be decoded,
    and a path was looked for in them; `mentions` are records of an internal topic in which an
    identifier is found, `names` the groups and transactional ids that they are about; `elsewhere`
    are records that are not found, and have the bytes of a key in a longer key or in the value."""

    entry: InputEntry
    size: int
    hits: Hits = field(default_factory=Hits)
    first_offset: int | None = None
    end_offset: int | None = None
    records: int = 0
    undecoded: int = 0
    mentions: int = 0
    names: tuple[str, ...] = ()
    unsearched: tuple[Unsearched, ...] = ()
    elsewhere: int = 0

    def unsearched_runs(self) -> list[Unsearched]:
        """Return the ranges that were not searched, adjacent ones as one."""
        runs: list[Unsearched] = []
        for each in sorted(self.unsearched, key=lambda each: each.position):
            if runs and runs[-1].end == each.position:
                runs[-1] = runs[-1].joined(each)
            else:
                runs.append(each)
        return runs

    @property
    def searched_bytes(self) -> int:
        return self.size - sum(each.size for each in self.unsearched)


def search_file(entry: InputEntry, wanted: Wanted) -> FileSearch:
    """Search a log file. One that cannot be read at all is not searched as a whole."""
    try:
        with InputFile(entry.path) as file:
            return search_source(entry, file, wanted)
    except (CorruptDataError, UnsupportedFormatError) as error:
        whole = Unsearched(0, entry.size, str(error))
        found = first_position(entry.path, plain_needles(wanted.identifiers))
        return FileSearch(entry, entry.size, unsearched=(replace(whole, trace=found),))


def search_source(entry: InputEntry, file: Source, wanted: Wanted) -> FileSearch:
    """Search the bytes of a log file, or of some of its batches. Raises CorruptDataError,
    UnsupportedFormatError for what cannot be read at all."""
    internal = entry.is_internal
    matcher = RecordMatcher(everywhere(wanted.identifiers)) if internal else wanted.matcher()
    holds = None if internal else wanted.holds()
    options = SegmentOptions(entry.base_offset, entry.next_base_offset)
    names = dict.fromkeys((*_PLACES, *matcher.columns, *(holds.columns if holds else ())))
    records = RecordColumns(options, tuple(names), {}, sieve=matcher.sieve)
    search = SegmentSearch(size=file.size)
    parts: list[Hits] = []
    unread: list[Unsearched] = []
    names_found: dict[str, None] = {}
    is_last = entry.next_base_offset is None and not entry.is_tiered
    batches = SegmentBatches(FileWindow(file), options)

    def note(table: LongArray) -> None:
        unread.extend(_unread_payloads(table))

    for batch, table in searched_records(search, batches, records, is_last=is_last, on_chunk=note):
        if isinstance(matcher, RecordMatcher) and batch.schema.names != records.schema.names:
            matcher.pass_over(batch)
            continue
        mask = matcher.matches(batch)
        if mask.any():
            found = batch.filter(pa.array(mask))
            parts.append(_hits(found, table, holds))
            if internal:
                names_found.update(dict.fromkeys(_names(entry.topic or "", found)))
    hits = Hits.joined(parts)
    return FileSearch(
        entry,
        file.size,
        Hits() if internal else hits,
        search.first_offset,
        search.end_offset,
        search.records,
        matcher.undecoded,
        len(hits) if internal else 0,
        tuple(names_found)[:_MOST_NAMES],
        tuple(_with_traces(entry.path, [*_unsearched(search), *unread], wanted)),
        0 if internal else matcher.elsewhere,
    )


def _hits(
    found: pa.RecordBatch, table: LongArray, holds: RecordMatcher | SealedMatcher | None
) -> Hits:
    positions = integers(found.column("position")).copy()
    rows = table[np.searchsorted(table[:, column.POSITION], positions)]
    sizes = pc.fill_null(pc.binary_length(found.column("value")), NO_VALUE)
    return Hits(
        positions,
        integers(found.column("offset")).copy(),
        integers(found.column("timestampMs")).copy(),
        sizes.cast(pa.int64()).to_numpy(zero_copy_only=False),
        np.where(column.has_delete_horizon(rows), rows[:, column.BASE_TIMESTAMP], NO_VALUE),
        np.array([*map(_key_hash, found.column("key").to_pylist())], dtype=np.int64),
        np.zeros(len(found), dtype=np.bool_) if holds is None else holds.matches(found),
    )


def _key_hash(key: bytes | None) -> int:
    if key is None:
        return 0
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big", signed=True)


def _names(topic: str, found: pa.RecordBatch) -> Iterator[str]:
    """Yield the groups and transactional ids that records of an internal topic are about."""
    if topic == REMOTE_LOG_METADATA:
        return
    for key, value in zip(*(found.column(name).to_pylist() for name in ("key", "value")),
                          strict=True):  # fmt: skip
        fields = read_internal_record(topic, key, value).key or {}
        for name in ("group", "groupId", "transactionalId"):
            if isinstance(fields.get(name), str):
                yield str(fields[name])


def _unsearched(search: SegmentSearch) -> Iterator[Unsearched]:
    for damage in search.damages:
        words = f"{damage.fault.label}: {damage.detail}"
        yield Unsearched(damage.position, damage.length, words, damage.expected_offset)
    for ending in search.endings:
        # Zeros at the end are room that a broker took in advance.
        if ending.fault is not Fault.ZEROS:
            words = f"{ending.fault.label}: {ending.detail}; a broker that starts cuts it off"
            yield Unsearched(ending.position, ending.length, words, ending.expected_offset)


def _with_traces(path: str, places: Sequence[Unsearched], wanted: Wanted) -> Iterator[Unsearched]:
    """Yield places that were not searched, with where the plain bytes of an identifier are."""
    needles = plain_needles(wanted.identifiers) if places else []
    for each in places:
        trace = first_position(path, needles, [(each.position, each.end)])
        yield replace(each, trace=trace)


def trace_words(position: int) -> str:
    """Return that an identifier's bytes are in what is not searched record by record."""
    return f"the bytes of an identifier are at position {position}"


def _unread_payloads(table: LongArray) -> Iterator[Unsearched]:
    """Yield the sound batches that announce no record and have bytes where records are."""
    is_empty = (table[:, column.FAULT] == 0) & (table[:, column.MAGIC] == 2)
    is_empty &= table[:, column.RECORDS_COUNT] == 0
    for row in table[is_empty & (table[:, column.SIZE] > V2_HEADER_BYTES)].tolist():
        size = row[column.SIZE] - V2_HEADER_BYTES
        words = "bytes after the header of a batch that announces no record"
        position = row[column.POSITION] + V2_HEADER_BYTES
        yield Unsearched(position, size, words, row[column.BASE_OFFSET])
