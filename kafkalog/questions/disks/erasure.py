"""Which records are a person's, in every file there is, and what could not be searched?

Rules: docs/erasure.md F1108 to F1112.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from kafkalog.errors import LogDirError, refuse_unknown
from kafkalog.inspection.erasure.erased_files import DELETE_OBJECTS, unwritable_objects
from kafkalog.inspection.erasure.file_search import FileSearch, Wanted, search_file, trace_words
from kafkalog.inspection.erasure.input_files import InputEntry, Part, input_files
from kafkalog.inspection.erasure.plain_bytes import first_position, plain_needles
from kafkalog.inspection.erasure.registered_values import decoders_for
from kafkalog.views.parallel import in_order, processes_for
from kafkalog.words import counted, first_names, time_text

_MOST_NAMED = 5
# So many lines are shown about what was not searched of one kind.
_MOST_LINES = 20
# Topics that programs write from others: Kafka Streams, dead letters, Connect, MirrorMaker.
_DERIVED = (
    (re.compile(r".+-changelog"), "a changelog of Kafka Streams"),
    (re.compile(r".+-repartition"), "a repartition topic of Kafka Streams"),
    (re.compile(r".*(dlq|dead[-_.]?letter|retry).*", re.IGNORECASE), "records that failed"),
    (re.compile(r"connect[-_.].*|.*[-_.]connect[-_.].*"), "a topic of Kafka Connect"),
)
OnDone = Callable[[int], None]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """What to search, and where: the inputs' paths; the topics, all if none are given; a regular
    expression that is found in topics' names."""

    paths: Sequence[str]
    wanted: Wanted
    topics: Sequence[str] = ()
    topic_pattern: str | None = None

    def has_topic(self, topic: str | None) -> bool:
        """Return whether the files of a topic are searched."""
        if self.topics and topic not in self.topics:
            return False
        return self.topic_pattern is None or bool(re.search(self.topic_pattern, topic or ""))


@dataclass(frozen=True)
class Erasure:
    """What was searched: a search for each log file, and the other files. `skipped` are log files
    of topics that were not asked for; `traces` are files that are not searched as logs, with the
    position where the plain bytes of an identifier first are."""

    request: ErasureRequest
    searches: Sequence[FileSearch]
    beside: Sequence[InputEntry]
    skipped: Sequence[InputEntry]
    left_out: Sequence[InputEntry]
    traces: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def totals(self) -> ErasureTotals:
        """What was found, all in all."""
        return ErasureTotals.of(self.searches)

    @property
    def unknown(self) -> Sequence[InputEntry]:
        """The files that are not searched, and that can have records."""
        return [each for each in self.left_out if each.can_have_records]

    @property
    def is_complete(self) -> bool:
        """Whether everything was searched that can have records."""
        return self.totals.is_complete and not self.unknown

    @property
    def entries(self) -> Iterator[InputEntry]:
        """The files that a new directory has."""
        yield from (each.entry for each in self.searches)
        yield from (*self.skipped, *self.beside)

    def why_not(self, entry: InputEntry) -> str:
        """Return why a file is not searched, and whether an identifier's bytes are in it."""
        why = entry.why or "not a log: an index, a checkpoint or the like"
        return f"{why}; {self.trace_words(entry)}" if entry.path in self.traces else why

    def trace_words(self, entry: InputEntry) -> str:
        """Return where an identifier's bytes are in a file that is not searched as a log."""
        return trace_words(self.traces[entry.path])

    def topic_rows(self) -> list[Row]:
        """Return a row per topic."""
        by_topic: dict[str, list[FileSearch]] = {}
        for each in self.searches:
            by_topic.setdefault(each.entry.topic or "?", []).append(each)
        return [_topic_row(topic, found) for topic, found in sorted(by_topic.items())]

    def file_rows(self) -> list[Row]:
        """Return a row per log file."""
        return [_file_row(each) for each in self.searches]

    def record_rows(self) -> Iterator[Row]:
        """Yield a row per record that was found."""
        for each in self.searches:
            yield from _record_rows(each)

    def tombstones(self) -> list[LoneTombstones]:
        """Return the partitions with keys that only have a tombstone."""
        logs: dict[tuple[str, int, str], list[FileSearch]] = {}
        for each in self.searches:
            if len(each.hits):
                entry = each.entry
                place = entry.topic or "?", entry.partition or 0, os.path.dirname(entry.path)
                logs.setdefault(place, []).append(each)
        found = (_lone_tombstones(place, each) for place, each in logs.items())
        return [each for each in found if each.keys]

    def words(self) -> str:
        """Return one line: what was found, and how much of the input that holds for."""
        if not self.unknown:
            return self.totals.words()
        return f"{self.totals.words()}; NOT SEARCHED: {counted(len(self.unknown), 'file')}"

    def notes(self) -> Iterator[str]:
        """Yield lines about what is not erased, or was not searched."""
        yield from (each.words() for each in self.tombstones())
        if self.request.wanted.sealed and any(each.entry.is_internal for each in self.searches):
            yield (
                "not searched: internal topics for names, and other files for plain bytes: both "
                "need --identifiers"
            )
        for row in self.topic_rows():
            yield from _topic_notes(row)
        for words in unwritable_objects(self.searches):
            yield f"cannot be erased here: {words}: {DELETE_OBJECTS}"
        if self.skipped:
            topics = sorted({each.topic or "?" for each in self.skipped})
            yield f"not searched, as not asked for: {first_names(topics, _MOST_NAMED)}"
        yield from _first_of(
            (each.path in self.traces, f"{each.path}: {self.why_not(each)}")
            for each in self.left_out
        )
        for each in self.beside:
            if each.path in self.traces:
                yield f"{each.path}: stays as it is, {self.trace_words(each)}"
        yield from _first_of(
            (run.trace is not None, f"{each.entry.path}: {run.words()}")
            for each in self.searches
            for run in each.unsearched_runs()
        )
        yield from _first_of(
            (False, f"{each.entry.path}: {counted(each.undecoded, 'value')} that nothing decodes")
            for each in self.searches
            if each.undecoded
        )


@dataclass
class ErasureTotals:
    """Sums over log files."""

    files: int = 0
    bytes: int = 0
    records: int = 0
    matches: int = 0
    held: int = 0
    tombstones: int = 0
    mentions: int = 0
    undecoded: int = 0
    elsewhere: int = 0
    unsearched_bytes: int = 0
    topics: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, searches: Iterable[FileSearch]) -> ErasureTotals:
        """Return the sums."""
        totals = cls()
        for each in searches:
            totals.files += 1
            totals.bytes += each.size
            totals.records += each.records
            totals.matches += len(each.hits)
            totals.held += int(each.hits.held.sum())
            totals.tombstones += int(each.hits.tombstones.sum())
            totals.mentions += each.mentions
            totals.undecoded += each.undecoded
            totals.elsewhere += each.elsewhere
            totals.unsearched_bytes += each.size - each.searched_bytes
            if len(each.hits):
                totals.topics.add(each.entry.topic or "?")
        return totals

    @property
    def erased(self) -> int:
        """How many records are to be removed."""
        return self.matches - self.held

    @property
    def is_complete(self) -> bool:
        """Whether every byte and every value could be searched."""
        return not self.undecoded and not self.unsearched_bytes

    def words(self) -> str:
        """Return a line about them."""
        searched = (
            f"{counted(self.records, 'record')} in {counted(self.files, 'log file')} searched"
        )
        if self.matches:
            found = (
                f"{counted(self.matches, 'record')} found in {counted(len(self.topics), 'topic')}"
            )
        else:
            found = "no record found"
        held = f", {self.held} of them on legal hold" if self.held else ""
        parts = [f"{found}{held}", searched]
        if self.mentions:
            parts.append(f"{counted(self.mentions, 'record')} of internal topics name them")
        if self.unsearched_bytes:
            parts.append(f"NOT SEARCHED: {counted(self.unsearched_bytes, 'byte')}")
        if self.undecoded:
            parts.append(f"NOT DECODED: {counted(self.undecoded, 'value')}")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class LoneTombstones:
    """Keys of a partition of which only tombstones are left; `horizon_ms` is when the cleaner may
    remove the last of them, None where no cleaning has set it."""

    topic: str
    partition: int
    directory: str
    keys: int
    horizon_ms: int | None

    def words(self) -> str:
        """Return a line about them."""
        when = (
            "in a compacted topic the cleaner removes it at the first cleaning that comes "
            "delete.retention.ms (24 hours by default) after the one that marks it"
            if self.horizon_ms is None
            else f"the first cleaning after {time_text(self.horizon_ms)} removes it"
        )
        return (
            f"not yet erased: {self.directory}: {counted(self.keys, 'key')} with only a tombstone, "
            f"which has the key; {when}"
        )


def listed_files(request: ErasureRequest) -> list[InputEntry]:
    """Return every file under the request's paths. Raises LogDirError if there is no log."""
    entries = [entry for path in request.paths for entry in input_files(path)]
    entries = [*{entry.path: entry for entry in entries}.values()]
    if not any(entry.part is Part.LOG for entry in entries):
        raise LogDirError(f"{', '.join(request.paths)}: no log file (<offset>.log) in it or below")
    return entries


def search_files(
    request: ErasureRequest,
    entries: Sequence[InputEntry],
    *,
    processes: int | None,
    on_done: OnDone = lambda _: None,
) -> Erasure:
    """Search those of the files that are logs. Raises OptionError for a topic that none has."""
    logs = [entry for entry in entries if entry.part is Part.LOG]
    chosen = [entry for entry in logs if request.has_topic(entry.topic)]
    _refuse_unknown_topics(request, logs)
    request = _with_decoders(request, entries)

    def searched(entry: InputEntry) -> Iterator[FileSearch]:
        yield search_file(entry, request.wanted)

    found = in_order(
        searched,
        chosen,
        processes=processes_for(sum(entry.size for entry in chosen), processes),
        on_done=lambda entry: on_done(entry.size),
    )
    searches = [*found]
    return Erasure(
        request,
        searches,
        [entry for entry in entries if entry.part in (Part.INDEX, Part.BESIDE)],
        [entry for entry in logs if not request.has_topic(entry.topic)],
        [entry for entry in entries if entry.part is Part.LEFT_OUT],
        _traces(request, entries, processes),
    )


def _refuse_unknown_topics(request: ErasureRequest, logs: Sequence[InputEntry]) -> None:
    """A topic that is misspelt would be searched in vain, and called free of the person."""
    there = {entry.topic for entry in logs if entry.topic is not None}
    refuse_unknown("--topic", request.topics, there)
    pattern = request.topic_pattern
    if pattern is not None and not any(request.has_topic(topic) for topic in there):
        refuse_unknown("--topic-pattern", [pattern], there)


def _with_decoders(request: ErasureRequest, entries: Sequence[InputEntry]) -> ErasureRequest:
    """Return a request that also decodes what the registry in the inputs knows, unless another one
    is given. Rule: F1262."""
    if request.wanted.decoders:
        return request
    decoders = decoders_for(None, entries)
    return replace(request, wanted=replace(request.wanted, decoders=decoders))


def _traces(
    request: ErasureRequest, entries: Sequence[InputEntry], processes: int | None
) -> dict[str, int]:
    """Return where the plain bytes of identifiers are in files that are not searched as logs.
    Indexes of segments have offsets, times and positions only. Rule: F1260."""
    needles = plain_needles(request.wanted.identifiers)
    others = [
        each for each in entries if each.part in (Part.BESIDE, Part.LEFT_OUT) and each.is_file
    ]

    def searched(entry: InputEntry) -> Iterator[tuple[str, int | None]]:
        yield entry.path, first_position(entry.path, needles)

    count = processes_for(sum(entry.size for entry in others), processes)
    found = in_order(searched, others, processes=count)
    return {path: position for path, position in found if position is not None}


def derived_words(topic: str) -> str | None:
    """Return what a topic is that a program writes from others, by its name."""
    return next((words for pattern, words in _DERIVED if pattern.fullmatch(topic)), None)


def _first_of(places: Iterable[tuple[bool, str]]) -> Iterator[str]:
    """Yield lines about places that were not searched: all in which an identifier's bytes are, the
    first of the others, and where the rest is listed."""
    with_trace: list[str] = []
    others: list[str] = []
    for has_trace, words in places:
        (with_trace if has_trace else others).append(f"not searched: {words}")
    yield from with_trace
    yield from others[:_MOST_LINES]
    if len(others) > _MOST_LINES:
        yield (
            f"not searched: {len(others) - _MOST_LINES} more places, none with the bytes of an "
            "identifier: the proof lists all (--to DIR --proof FILE), and --by file counts them "
            "for each log file"
        )


def _topic_row(topic: str, searches: Sequence[FileSearch]) -> Row:
    totals = ErasureTotals.of(searches)
    names = dict.fromkeys(name for each in searches for name in each.names)
    return {
        "topic": topic,
        "files": totals.files,
        "bytes": totals.bytes,
        "records": totals.records,
        "matches": totals.matches,
        "erased": totals.erased,
        "held": totals.held,
        "tombstones": totals.tombstones,
        "mentions": totals.mentions,
        "names": [*names],
        "undecoded": totals.undecoded,
        "elsewhere": totals.elsewhere,
        "unsearched_bytes": totals.unsearched_bytes,
        "derived": derived_words(topic),
    }


def _topic_notes(row: Row) -> Iterator[str]:
    """Yield what is to be known of a topic beside its numbers."""
    if row["mentions"]:
        yield _mention_words(row)
    elif row["derived"] and row["matches"]:
        yield f"{row['topic']}: {row['derived']}, what wrote it may write it again"
    if row["elsewhere"]:
        yield (
            f"{row['topic']}: {counted(row['elsewhere'], 'record')} with the bytes of a key in a "
            "longer key or in the value stay; if they are the person's, give a line with "
            '"text", "key-path" or "value-path"'
        )


def _mention_words(row: Row) -> str:
    names = f": {first_names(row['names'], _MOST_NAMED)}" if row["names"] else ""
    return (
        f"{row['topic']}: {counted(row['mentions'], 'record')} of this internal topic "
        f"{'name' if row['mentions'] != 1 else 'names'} an identifier and stay{names}"
    )


def _file_row(search: FileSearch) -> Row:
    entry = search.entry
    return {
        "topic": entry.topic,
        "partition": entry.partition,
        "mark": entry.directory_mark or entry.file_mark or ("tiered" if entry.is_tiered else None),
        "records": search.records,
        "first_offset": search.first_offset,
        "end_offset": search.end_offset,
        "matches": len(search.hits),
        "erased": int(search.hits.erased.sum()),
        "held": int(search.hits.held.sum()),
        "tombstones": int(search.hits.tombstones.sum()),
        "batches": len(search.hits.by_batch()),
        "mentions": search.mentions,
        "undecoded": search.undecoded,
        "unsearched_bytes": search.size - search.searched_bytes,
        "bytes": search.size,
        "file": entry.path,
    }


def _record_rows(search: FileSearch) -> Iterator[Row]:
    hits, entry = search.hits, search.entry
    columns = (hits.offsets, hits.timestamps, hits.value_sizes, hits.positions, hits.held)
    for offset, timestamp_ms, size, position, held in zip(
        *(each.tolist() for each in columns), strict=True
    ):
        yield {
            "topic": entry.topic,
            "partition": entry.partition,
            "offset": offset,
            "timestamp_ms": None if timestamp_ms == -1 else timestamp_ms,
            "value_size": None if size == -1 else size,
            "is_held": held,
            "position": position,
            "file": entry.path,
        }


def _lone_tombstones(place: tuple[str, int, str], searches: Sequence[FileSearch]) -> LoneTombstones:
    with_value: set[int] = set()
    horizons: dict[int, int] = {}
    for each in searches:
        hits = each.hits
        with_value.update(hits.keys[~hits.tombstones].tolist())
        chosen = hits.tombstones
        horizons.update(
            zip(hits.keys[chosen].tolist(), hits.horizons[chosen].tolist(), strict=True)
        )
    lone = {key: horizon for key, horizon in horizons.items() if key not in with_value}
    last = max(lone.values(), default=-1)
    is_known = bool(lone) and min(lone.values()) >= 0
    return LoneTombstones(*place, len(lone), last if is_known else None)
