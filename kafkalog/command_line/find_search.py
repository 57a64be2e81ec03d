"""What `kafkalog find` searches, and its account. Rules: docs/command-line.md F587, F588."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import merge
from itertools import groupby, islice

import pyarrow as pa

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.fault_details import FaultyRange, missing_end
from kafkalog.command_line.inputs import logs_of_topics
from kafkalog.command_line.terminal import print_note
from kafkalog.errors import OptionError, UnsupportedFormatError
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.dump.decoded_search import with_decoded
from kafkalog.inspection.dump.dump_messages import is_decoded, payload_text, shown_payloads
from kafkalog.inspection.dump.record_search import (
    MatchedRecord,
    ReadRecords,
    RecordFilter,
    SegmentSearch,
    Visibility,
    judged_records,
    largest_first,
    search_segment,
    wanted_records,
    with_payloads,
)
from kafkalog.inspection.erasure.identifiers import Identifier
from kafkalog.inspection.erasure.record_matching import Decoder, RecordMatcher
from kafkalog.inspection.logs.replica_facts import replica_sets
from kafkalog.inspection.metadata.current_topics import without_former
from kafkalog.storage.log_dir.other_entries import absent_lines
from kafkalog.storage.partition_log import PartitionLog, SegmentFile, bytes_in
from kafkalog.storage.reading.log_bounds import recorded_end
from kafkalog.storage.reading.offset_ranges import TimestampRange
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.views.parallel import in_order, processes_for
from kafkalog.views.progress import progress_bar
from kafkalog.wire.murmur2 import partition_of_key
from kafkalog.words import counted, first_names, size_text

FoundRow = tuple[object, ...]
# So many logs have a line each.
_MOST_LOGS = 10
# The most characters of keys and values.
_MOST_SHOWN = 64
_Place = tuple[PartitionLog, SegmentFile]
_Match = tuple[PartitionLog, MatchedRecord]


@dataclass(frozen=True)
class FindRequest:
    """The command's arguments: a key, bytes in the value, a header, a value at a path, times, or
    several of these. `decoders` are for values that are not JSON. With `largest` so many of the
    largest records are found, not of the last ones. `for_people`: replicas that have a record in
    the same batch have one row for it, and count as one of `limit` or `largest`; rows have the
    beginnings of key and value, and no headers."""

    topics: tuple[str, ...]
    partitions: tuple[int, ...] = ()
    key: bytes | None = None
    contained: bytes | None = None
    header: Identifier | None = None
    at_path: Identifier | None = None
    decoders: tuple[Decoder, ...] = ()
    timestamps: TimestampRange | None = None
    by_partitioner: bool = False
    partition_count: int | None = None
    limit: int = 1000
    largest: int | None = None
    for_people: bool = False

    @property
    def most(self) -> int:
        """How many records are shown."""
        return self.largest or self.limit

    @property
    def names_records(self) -> bool:
        """Whether something is looked for in records, and not their times only."""
        asked = (self.key, self.contained, self.header, self.at_path)
        return any(each is not None for each in asked)


@dataclass
class _Account:
    """The account of the search of one partition."""

    log: PartitionLog
    segments: list[tuple[SegmentFile, SegmentSearch]] = field(default_factory=list)

    def total(self, name: str) -> int:
        return sum(getattr(search, name) for _, search in self.segments)

    @property
    def first_offset(self) -> int | None:
        return next((s.first_offset for _, s in self.segments if s.first_offset is not None), None)

    @property
    def end_offset(self) -> int | None:
        ends = [s.end_offset for _, s in self.segments if s.end_offset is not None]
        return ends[-1] if ends else None

    @property
    def damages(self) -> list[tuple[str, FaultyRange]]:
        """Damage with its file, or with the directory of a log without a segment."""
        if not self.segments:
            missing = missing_end(self.log.log_start, 0, recorded_end(self.log))
            return [(self.log.path, missing)] if missing else []
        return [(file.path, damage) for file, found in self.segments for damage in found.damages]

    @property
    def why_incomplete(self) -> str | None:
        """What says that the cleaner has been in the log: its checkpoint or, in a log directory
        without one, missing offsets; None for nothing. F1425"""
        if self.log.is_compacted:
            return "compacted"
        is_known = self.log.log_dir.has_cleaner_checkpoint
        lacks = any(search.lacks_offsets for _, search in self.segments)
        return "without some offsets" if lacks and not is_known else None


@dataclass
class Found:
    """The rows of the three tables, how many records match, those of each copy, and how many of
    these the rows are about. For people `found` is a list, and copies together have their number
    before the file; otherwise rows are read one after another, so that few are in memory."""

    matches: int
    shown: int
    found: Iterable[FoundRow]
    has_copies_together: bool
    searched: list[FoundRow]
    damages: list[FoundRow]


def logs_to_search(log_dirs: Sequence[str], request: FindRequest) -> list[PartitionLog]:
    """Return the partitions to search. Raises OptionError for a missing topic or partition.

    Which partition a partitioner chose depends on their number: that of the partitions here, if it
    is not given.
    """
    logs = logs_of_topics(log_dirs, request.topics, request.partitions)
    logs = without_former(logs, request.topics)
    for line in absent_lines(log_dirs, logs, request.topics, request.partitions):
        print_note(line)
    oldest = next(filter(is_oldest_layout, logs), None)
    if oldest is not None:
        raise UnsupportedFormatError(
            f"{oldest.path} has files of Kafka 0.7's layout, whose records have no keys: read them "
            "with view records of the Spark source"
        )
    if not request.by_partitioner or request.key is None:
        return logs
    topics = dict.fromkeys(request.topics or (log.topic for log in logs if log.topic is not None))
    return [log for topic in topics for log in _chosen_by_key(topic, logs, request, request.key)]


def _chosen_by_key(
    topic: str, logs: Sequence[PartitionLog], request: FindRequest, key: bytes
) -> list[PartitionLog]:
    """Return the replicas of the partition that Java's partitioner chooses for the key."""
    partitions = [log for log in logs if log.topic == topic]
    count = request.partition_count or 1 + max(
        (log.partition or 0 for log in partitions), default=0
    )
    number = partition_of_key(key, count)
    print_note(
        f"Java's partitioner chooses {topic}-{number} of {counted(count, 'partition')}: only that "
        "one is searched"
    )
    chosen = [log for log in partitions if log.partition == number]
    if not chosen:
        raise OptionError("--partitioner", "java", f"log directories with {topic}-{number}")
    return chosen


def search(logs: Sequence[PartitionLog], request: FindRequest, *, processes: int | None) -> Found:
    """Search all segments of the logs; write a summary to stderr."""
    places: list[_Place] = [(log, segment) for log in logs for segment in log.segments]
    accounts = {log.path: _Account(log) for log in logs}
    is_shown = not sys.stdout.isatty()
    size = bytes_in(logs)
    processes = processes_for(size, processes)
    with progress_bar(size, hidden=not is_shown) as bar:
        results = in_order(
            partial(_searched, request=request),
            places,
            processes=processes,
            on_done=lambda place: bar.update(place[1].size),
        )
        for (log, segment), searched in zip(places, results, strict=True):
            accounts[log.path].segments.append((segment, searched))
    ordered = _newest(accounts.values()) if request.largest is None else _largest(accounts.values())
    matches = _first(ordered, request)
    # Only replicas of one that has a match need to be compared.
    names = {log.topic_partition for log, _ in matches}
    ends = _lineage_ends([log for log in logs if log.topic_partition in names])
    found = _found_rows(matches, ends, processes, request)
    result = Found(
        matches=sum(account.total("matches") for account in accounts.values()),
        shown=len(matches),
        found=found,
        has_copies_together=isinstance(found, list) and len(found) < len(matches),
        searched=[_searched_row(account) for account in accounts.values()],
        damages=[row for account in accounts.values() for row in _damage_rows(account)],
    )
    _tell(result, [*accounts.values()], request)
    return result


def _searched(place: _Place, request: FindRequest) -> Iterator[SegmentSearch]:
    log, segment = place
    given = (each for each in (request.header, request.at_path) if each is not None)
    matchers = [RecordMatcher([each], request.decoders) for each in given]

    def kept(records: pa.RecordBatch, key: bytes | None = request.key) -> pa.RecordBatch:
        records = wanted_records(key, request.contained)(records)
        for matcher in matchers:
            records = records.filter(pa.array(matcher.matches(records)))
        return records

    wanted: RecordFilter = kept
    if log.topic is not None and _is_decoded(log.topic, request):
        is_bytes = request.at_path is None
        kept_bytes: RecordFilter = kept if is_bytes else lambda records: records.slice(0, 0)
        wanted = with_decoded(log.topic, kept_bytes, request.key, partial(kept, key=None))
    reads = ReadRecords(
        request.timestamps,
        # Their keys and values are Kafka's own: they are found by time alone.
        control_records=not request.names_records and request.largest is None,
        headers=request.header is not None,
    )
    with opened_segment(segment) as file:
        searched = search_segment(
            *(log, segment, file, wanted, request.most, reads), by_size=request.largest is not None
        )
    searched.undecoded = sum(matcher.undecoded for matcher in matchers)
    yield searched


def _is_decoded(topic: str, request: FindRequest) -> bool:
    """Return whether keys and values are also compared decoded: those of brokers only if their
    topic is named, as they are many."""
    is_wanted = request.names_records and is_decoded(topic)
    return is_wanted and (topic in request.topics or not topic.startswith("__"))


def _newest(accounts: Iterable[_Account]) -> Iterator[_Match]:
    """Return the last matches of all partitions, the last first. The order within a partition is
    that of its offsets, whatever the times say; between partitions the times of the records that
    are next count. Rule: docs/command-line.md F952."""
    of_partition: dict[tuple[object, ...], list[_Match]] = {}
    for account in accounts:
        log = account.log
        place = log.topic_partition or (log.path,)
        matches = ((log, record) for _, searched in account.segments for record in searched.found)
        of_partition.setdefault(place, []).extend(matches)
    for found in of_partition.values():
        found.sort(key=lambda match: (match[1].offset, match[1].timestamp_ms), reverse=True)
    # Takes the latest of the matches that come next in their partitions.
    return merge(*of_partition.values(), key=lambda match: match[1].timestamp_ms, reverse=True)


def _largest(accounts: Iterable[_Account]) -> Iterator[_Match]:
    """Return the matches of all partitions, the largest first."""
    every = [
        (account.log, record)
        for account in accounts
        for _, searched in account.segments
        for record in searched.found
    ]
    return iter(sorted(every, key=lambda match: largest_first(match[1])))


def _first(ordered: Iterator[_Match], request: FindRequest) -> list[_Match]:
    """Return as many matches as are shown, with all copies of each if they are shown together."""
    if not request.for_people:
        return list(islice(ordered, request.most))
    kept: list[_Match] = []
    records: set[tuple[object, ...]] = set()
    for match in ordered:
        record = _record_of(match)
        if record in records or len(records) < request.most:
            records.add(record)
            kept.append(match)
    return kept


def _record_of(match: _Match) -> tuple[object, ...]:
    """Return what the copies of a record have in common: a follower appends batches as the leader
    sends them, and a checksum is of the whole batch but for its base offset and leader epoch."""
    log, record = match
    return log.topic_partition or log.path, record.offset, int(record.batch[column.CRC])


def _found_rows(
    matches: Sequence[_Match], ends: Mapping[str, int], processes: int, request: FindRequest
) -> Iterable[FoundRow]:
    """Return a row per match, in their order, with what consumers see of it, and its size if the
    largest are wanted. For people the copies of a record have a row where consumers see the same of
    them, with their number. `ends` are up to where replicas are of the best one's
    lineage, by their paths."""
    by_log: dict[str, tuple[PartitionLog, list[MatchedRecord]]] = {}
    for log, record in sorted(matches, key=lambda match: match[1].offset):
        by_log.setdefault(log.path, (log, []))[1].append(record)
    logs = list(by_log.values())
    judge = partial(_judged, with_beginnings=request.for_people)
    judged = in_order(judge, logs, processes=processes)
    seen = {
        _place(record): _in_lineage(record, ends.get(log.path))
        for (log, _), found in zip(logs, judged, strict=True)
        for record in found
    }
    judged_matches = [(log, seen[_place(record)]) for log, record in matches]
    with_size = request.largest is not None
    if not request.for_people:
        return _whole_rows(judged_matches, with_size=with_size)
    alike: dict[tuple[object, ...], list[_Match]] = {}
    for match in judged_matches:
        alike.setdefault((_record_of(match), match[1].visibility), []).append(match)
    return [_found_row(*copies[0], with_size=with_size, copies=copies) for copies in alike.values()]


def _place(record: MatchedRecord) -> tuple[str, int, int]:
    return record.path, record.position, record.offset


def _lineage_ends(logs: Sequence[PartitionLog]) -> dict[str, int]:
    """Return up to where replicas are of the lineage of the best one, by their paths (F173)."""
    return {
        log.path: end for replicas in replica_sets(logs) for log, end in replicas.logs_and_ends[1:]
    }


def _in_lineage(record: MatchedRecord, end: int | None) -> MatchedRecord:
    if end is None or record.offset < end:
        return record
    return replace(record, visibility=Visibility.DIVERGED)


def _judged(
    of_log: tuple[PartitionLog, list[MatchedRecord]], *, with_beginnings: bool
) -> Iterator[list[MatchedRecord]]:
    judged = judged_records(*of_log)
    yield [*with_payloads(of_log[0], judged, are_whole=False)] if with_beginnings else judged


def _whole_rows(matches: Iterable[_Match], *, with_size: bool) -> Iterator[FoundRow]:
    """Yield rows with whole keys and values, of the records of one batch after another."""
    for _, some in groupby(matches, lambda match: _place(match[1])[:2]):
        of_batch = [*some]
        log = of_batch[0][0]
        records = with_payloads(log, [record for _, record in of_batch], are_whole=True)
        whole = {record.offset: record for record in records}
        for _, record in of_batch:
            yield _found_row(log, whole.pop(record.offset), with_size=with_size)


def _found_row(
    log: PartitionLog, record: MatchedRecord, *, with_size: bool, copies: Sequence[_Match] = ()
) -> FoundRow:
    """Return the row: key, value and headers as they are, or with the `copies` of the record for
    people the beginnings of key and value, and what a value's size says of a tombstone."""
    time_ms = None if record.timestamp_ms == NO_VALUE else record.timestamp_ms
    place = log.topic, log.partition, record.offset, time_ms
    is_control = record.visibility is Visibility.CONTROL
    shown = shown_payloads(log.topic or "", record.key, record.value, is_control=is_control)
    seen = str(record.visibility), record.position, *((record.size,) if with_size else ())
    if not copies:
        return (*place, *shown, record.headers, record.value_size, *seen, record.path)
    is_tombstone = record.value_size is None and not is_control
    size = "tombstone" if is_tombstone else record.value_size
    brokers = sorted({copy.log_dir.broker_id for copy, _ in copies}, key=str)
    ids = ",".join("-" if each is None else str(each) for each in brokers)
    return (*place, *map(_beginning, shown), size, *seen, len(copies), ids, record.path)


def _beginning(payload: bytes | str | None) -> str | None:
    text = payload_text(payload)
    return text if text is None or len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _searched_row(account: _Account) -> FoundRow:
    log = account.log
    return (
        *(log.topic, log.partition, account.first_offset, account.end_offset, log.log_start),
        *(len(account.segments), account.total("size"), account.total("records")),
        *(account.total("matches"), len(account.damages)),
        *(sum(damage.length for _, damage in account.damages), account.why_incomplete is not None),
        account.total("undecoded"),
    )


def _damage_rows(account: _Account) -> list[FoundRow]:
    place = account.log.topic, account.log.partition
    return [
        (*place, path, d.position, d.length, d.fault.label, d.expected_offset)
        for path, d in account.damages
    ]


def _tell(result: Found, accounts: Sequence[_Account], request: FindRequest) -> None:
    """The verdict, and what it rests on, on stderr."""
    is_long = len(accounts) > _MOST_LOGS
    for line in _lines_by_topic(accounts) if is_long else _lines_by_log(accounts):
        print_note(line)
    for account in accounts:
        for _, _, path, position, length, fault, offset in _damage_rows(account):
            print_note(
                f"  {path}: position {position}, {counted(int(str(length)), 'byte')}: {fault}, "
                f"which may hide records from offset {offset} on"
            )
    order = "last" if request.largest is None else "largest"
    if result.matches:
        is_shorter = result.shown < result.matches
        shown = f": the {order} {result.shown:,} of them are shown" if is_shorter else ""
        copies = ", each copy counted" if result.has_copies_together else ""
        print_note(f"found {counted(result.matches, 'record')}{copies}{shown}")
    elif result.damages:
        print_note("not found, and damage may hide it")
    elif _sum(accounts, "undecoded"):
        print_note("not found, and values that are not decoded may hide it")
    else:
        keyless, records = (_sum(accounts, name) for name in ("keyless", "records"))
        none = keyless if request.key is not None else 0
        have = f"; {none:,} of {counted(records, 'record')} have no key" if none else ""
        print_note(f"not found{have}")


def _sum(accounts: Iterable[_Account], name: str) -> int:
    return sum(account.total(name) for account in accounts)


def _lines_by_log(accounts: Iterable[_Account]) -> Iterator[str]:
    for account in accounts:
        log, first, end = account.log, account.first_offset, account.end_offset
        offsets = "no offset" if first is None else f"offsets {first} to {(end or 0) - 1}"
        yield f"searched {log.name} in {log.path}: {offsets}, {_much([account])}"
        if first:
            yield f"  offsets below {first} are in no file here"
        yield from _lines_about([account])


def _lines_by_topic(accounts: Iterable[_Account]) -> Iterator[str]:
    """Yield lines where so many logs were searched that a line for each would hide the answer."""
    by_topic: dict[str, list[_Account]] = {}
    for account in accounts:
        by_topic.setdefault(account.log.topic or account.log.name, []).append(account)
    for topic, logs in by_topic.items():
        ends = _last_offsets(logs)
        last = f"; last offset {first_names(ends, _MOST_LOGS)}" if ends else ""
        yield f"searched {topic}: {counted(len(logs), 'log')}, {_much(logs)}{last}"
        later = [f"{each.log.name} {each.first_offset}" for each in logs if each.first_offset]
        if later:
            names = first_names([*dict.fromkeys(later)], _MOST_LOGS)
            yield f"  in no file here: offsets below the first of {names}"
        yield from _lines_about(logs)


def _last_offsets(accounts: Iterable[_Account]) -> list[str]:
    """Return the last offset that was searched of each partition, of replicas the least and the
    greatest."""
    found: dict[object, set[int]] = {}
    for each in accounts:
        if each.end_offset is not None:
            found.setdefault(each.log.partition, set()).add(each.end_offset - 1)
    return [
        (f"{min(ends)} to {max(ends)}" if len(ends) > 1 else f"{max(ends)}")
        + ("" if partition is None else f" in partition {partition}")
        for partition, ends in found.items()
    ]


def _much(accounts: Sequence[_Account]) -> str:
    records = counted(_sum(accounts, "records"), "record")
    segments = counted(sum(len(each.segments) for each in accounts), "segment")
    return f"{records} in {segments}, {size_text(_sum(accounts, 'size'))}"


def _lines_about(accounts: Sequence[_Account]) -> Iterator[str]:
    """Yield lines about what logs may hide."""
    for why in sorted({each.why_incomplete for each in accounts if each.why_incomplete}):
        names = [*dict.fromkeys(each.log.name for each in accounts if each.why_incomplete == why)]
        which = f"{why}: {first_names(names, _MOST_LOGS)}"
        what = which if len(accounts) > 1 else f"the log is {why}"
        yield f"  {what}: of a key, older records may have been removed"
    undecoded = _sum(accounts, "undecoded")
    if undecoded:
        yield f"  {counted(undecoded, 'value')} not decoded, which may hide what is at the path"
