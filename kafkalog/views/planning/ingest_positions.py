"""Up to which offsets topics are in a table of records, and what the next run adds to it.

Rules: docs/ingest.md F530 to F534.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar

from kafkalog.errors import RefusedOptionError
from kafkalog.format.offsets import OffsetSpan
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.storage.partition_log import segment_sizes
from kafkalog.storage.reading.offset_ranges import DoubtfulRecord
from kafkalog.storage.reading.read_plan import segments_within
from kafkalog.views.options.offset_options import by_topic
from kafkalog.views.planning.table_positions import ELSEWHERE, StateSource, TablePositions

WRITER = "kafkalog ingest_topics"
_ANEW = "--full-refresh replaces what the table has of the partition"


class FindingKind(Enum):
    """Why a partition has a gap in the table, has a record with a doubtful time, or is not read
    into it."""

    GAP = "gap"
    FUTURE_TIME = "future_time"
    TRUNCATED = "truncated"
    REWRITTEN = "rewritten"
    RECREATED = "recreated"


# A partition with such a finding is read.
_READ_ON = (FindingKind.GAP, FindingKind.FUTURE_TIME)


@dataclass(frozen=True, slots=True)
class IngestRange:
    """Offsets [from_offset, until_offset) of a partition that one run writes; none where a finding
    keeps it from that. `rows` is how many rows the table has of it, None where it is not counted
    yet."""

    topic: str
    partition: int
    from_offset: int
    until_offset: int
    until: str
    input_path: str
    cluster_id: str | None = None
    broker_id: int | None = None
    topic_id: str | None = None
    leader_epoch: int | None = None
    segments: int = 0
    segment_bytes: int = 0
    rows: int | None = None
    finding: str | None = None
    detail: str | None = None

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def is_empty(self) -> bool:
        return self.until_offset <= self.from_offset

    @property
    def is_stopped(self) -> bool:
        """Whether a finding keeps the partition from being read."""
        return self.finding is not None and FindingKind(self.finding) not in _READ_ON


def _read_ranges(found: Iterable[Mapping[str, Any]]) -> tuple[IngestRange, ...]:
    return tuple(IngestRange(**each) for each in found)


@dataclass(frozen=True, slots=True)
class IngestPositions(TablePositions):
    """What a version of a table of records holds, as far back as its first run reached. `ranges`
    are those that the run with the number `run` wrote, `token` distinguishes it from others with
    that number."""

    job: ClassVar[str] = WRITER
    rows: ClassVar[str] = "records"

    run: int = 0
    token: str = ""
    ranges: tuple[IngestRange, ...] = field(default=(), metadata={"read": _read_ranges})


class Replaces(Enum):
    """What the rows of a run take the place of."""

    NOTHING = "nothing"
    RANGES = "ranges"
    PARTITIONS = "partitions"


@dataclass(frozen=True, slots=True)
class IngestRun:
    """What a run is to do. `positions`: what the table holds after it.

    `replaces`: what its rows take the place of, nothing where they are only added. `replaced` are
    the partitions that are rewritten as a whole. `undecoded` is how many of its keys and values
    could not be decoded, `kept` how many may be an erased person's for that reason, once that is
    known.
    """

    replaces: Replaces
    positions: IngestPositions
    replaced: frozenset[TopicPartition] = frozenset()
    undecoded: Mapping[str, int] = field(default_factory=dict)
    kept: int = 0

    @property
    def has_findings(self) -> bool:
        """Whether something is not as it should be: in a range, or for an erased person."""
        return bool(self.findings or self.kept)

    @property
    def ranges(self) -> tuple[IngestRange, ...]:
        """Those that it writes, and those of which there is a finding."""
        return self.positions.ranges

    @property
    def written(self) -> tuple[IngestRange, ...]:
        """The ranges that have offsets."""
        return tuple(each for each in self.ranges if not each.is_empty)

    @property
    def findings(self) -> tuple[IngestRange, ...]:
        """The ranges with a finding."""
        return tuple(each for each in self.ranges if each.finding is not None)

    @property
    def starts(self) -> dict[TopicPartition, int]:
        """Where to begin to read."""
        return {each.key: each.from_offset for each in self.written}

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """Where to end."""
        return {each.key: each.until_offset for each in self.written}

    @property
    def has_work(self) -> bool:
        """Whether the table changes."""
        has_gap = any(each.finding == FindingKind.GAP.value for each in self.ranges)
        return bool(self.written) or has_gap or self.replaces is Replaces.PARTITIONS

    def with_gaps(self, deleted: Mapping[TopicPartition, Sequence[OffsetSpan]]) -> IngestRun:
        """Return the run with a finding for each partition of which these offsets were deleted
        while the run read it. Rules: docs/ingest.md F531, docs/format.md F950."""
        ranges = tuple(_with_gap(each, deleted.get(each.key, ())) for each in self.ranges)
        return replace(self, positions=replace(self.positions, ranges=ranges))

    def with_rows(
        self, counts: Mapping[TopicPartition, int], undecoded: Mapping[str, int] | None = None
    ) -> IngestRun:
        """Return the run with the number of rows of each range, for its commit and manifest."""
        ranges = tuple(replace(each, rows=counts.get(each.key, 0)) for each in self.ranges)
        positions = replace(self.positions, ranges=ranges)
        return replace(self, positions=positions, undecoded=undecoded or {})


def ingest_run(
    recorded: IngestPositions,
    sources: Sequence[StateSource],
    *,
    is_bounded: bool,
    full_refresh: bool = False,
    token: str = "",
) -> IngestRun:
    """Return what to read of the sources: what is new, or with `is_bounded` from their requested
    starts on.

    Raises StatePositionError for another cluster's logs, OptionError for a start after what the
    table holds, which would leave a hole.
    """
    for source in sources:
        recorded.refuse_other_cluster(source)
    replaced = recorded.replaced_by(sources) if full_refresh else frozenset()
    recorded = recorded.without_partitions(replaced)
    ranges = tuple(_range(recorded, source, is_bounded=is_bounded) for source in sources)
    replaces = Replaces.RANGES if is_bounded else Replaces.NOTHING
    if full_refresh:
        replaces = Replaces.PARTITIONS
    after = _after(recorded, ranges, sources, token, is_bounded)
    return IngestRun(replaces, after, replaced)


def _range(recorded: IngestPositions, source: StateSource, *, is_bounded: bool) -> IngestRange:
    position = recorded.next_offsets.get(source.key)
    stop = _why_stop(recorded, source, position)
    if stop is not None and position is not None:
        kind, detail = stop
        return _ingest_range(source, position, position, kind, detail)
    if is_bounded or position is None:
        start = max(source.start_offset, source.log_start_offset)
        if position is not None and start > position and source.end_offset > start:
            raise RefusedOptionError(
                "--from-time or --offsets",
                f"{source.name} would begin at offset {start} and the table would have a hole: it "
                f"ends at offset {position}, so begin there or before",
            )
        return _with_wrong_times(_ingest_range(source, start, source.end_offset), source, position)
    if source.log_start_offset > position:
        detail = (
            f"offsets {position} to {source.log_start_offset - 1} were deleted before they were "
            "read: they are not in the table"
        )
        start = source.log_start_offset
        end = max(start, source.end_offset)
        found = _ingest_range(source, start, end, FindingKind.GAP, detail)
        return _with_wrong_times(found, source, position)
    end = max(position, source.end_offset)
    return _with_wrong_times(_ingest_range(source, position, end), source, position)


def _with_wrong_times(found: IngestRange, source: StateSource, position: int | None) -> IngestRange:
    """Return the range with a finding that names the records with doubtful times in it, or those
    that a first run leaves out (F930)."""
    inside, outside = list[DoubtfulRecord](), list[DoubtfulRecord]()
    for each in source.passed_over:
        is_read = found.from_offset <= each.offset < found.until_offset
        (inside if is_read else outside).append(each)
    read = source.words_for(inside)
    words = [] if read is None else [f"{read}; this does not end the range, the table has it"]
    left_out = source.words_for(outside)
    if position is None and left_out is not None:
        words.append(f"{left_out}; the range does not begin there, the table does not have it")
    if not words:
        return found
    earlier = [found.detail] if found.detail else []
    kind = found.finding or FindingKind.FUTURE_TIME.value
    return replace(found, finding=kind, detail="; ".join([*earlier, *words]))


def _with_gap(found: IngestRange, deleted: Sequence[OffsetSpan]) -> IngestRange:
    if not deleted:
        return found
    spans = ", ".join(f"{span.start} to {span.end - 1}" for span in deleted)
    detail = f"offsets {spans} were deleted while the run read them: they are not in the table"
    if found.detail is not None:
        detail = f"{found.detail}; {detail}"
    return replace(found, finding=FindingKind.GAP.value, detail=detail)


def _ingest_range(
    source: StateSource,
    start: int,
    end: int,
    finding: FindingKind | None = None,
    detail: str | None = None,
) -> IngestRange:
    segments = segments_within(source.segments, start, end)
    return IngestRange(
        topic=source.topic,
        partition=source.partition,
        from_offset=start,
        until_offset=end,
        until=source.end_from,
        input_path=source.input_path,
        cluster_id=source.cluster_id,
        broker_id=source.broker_id,
        topic_id=source.topic_id,
        leader_epoch=source.leader_epoch_before(end),
        segments=len(segments),
        segment_bytes=sum(segment_sizes(segments)),
        finding=None if finding is None else finding.value,
        detail=detail,
    )


def _why_stop(
    recorded: IngestPositions, source: StateSource, position: int | None
) -> tuple[FindingKind, str] | None:
    """Return why a partition cannot go on in the table, None if it can."""
    if position is None:
        return None
    recreated = recorded.recreated_words(source)
    if recreated is not None:
        return FindingKind.RECREATED, f"{recreated}; {ELSEWHERE}, {_ANEW}"
    if source.log_end_offset < position:
        return FindingKind.TRUNCATED, (
            f"the log ends at offset {source.log_end_offset}, the table at {position}: this is an "
            f"older copy, or the log was truncated; give the current one, or {_ANEW}"
        )
    rewritten = recorded.rewritten_words(source, position)
    return None if rewritten is None else (FindingKind.REWRITTEN, f"{rewritten}; {_ANEW}")


def _after(
    recorded: IngestPositions,
    ranges: Sequence[IngestRange],
    sources: Sequence[StateSource],
    token: str,
    is_bounded: bool,
) -> IngestPositions:
    """Return the positions when the ranges are written."""
    next_offsets = dict(recorded.next_offsets)
    epochs, topic_ids = dict(recorded.leader_epochs), dict(recorded.topic_ids)
    for each in ranges:
        # Of a first run that was to begin at a time not reached yet nothing is known.
        is_undecided = is_bounded and each.is_empty and each.key not in next_offsets
        if each.is_stopped or is_undecided:
            continue
        if each.topic_id:
            topic_ids[each.topic] = each.topic_id
        if each.until_offset >= next_offsets.get(each.key, 0):
            next_offsets[each.key] = each.until_offset
            if each.leader_epoch is not None:
                epochs[each.key] = each.leader_epoch
    return IngestPositions(
        isolation_level=recorded.isolation_level,
        run=recorded.run + 1,
        token=token,
        cluster_id=next((each.cluster_id for each in sources if each.cluster_id), None)
        or recorded.cluster_id,
        next_offsets=next_offsets,
        leader_epochs=epochs,
        topic_ids=topic_ids,
        ranges=tuple(each for each in ranges if not each.is_empty or each.finding is not None),
    )


def ingest_starting_offsets(positions: IngestPositions, ranges: Iterable[IngestRange]) -> str:
    """Return what Spark's Kafka source takes as `startingOffsets` to go on where the table ends: a
    text of JSON with all partitions of the topics that are in the table. Topics of which a
    partition is not read any more are left out (F534)."""
    stopped = {each.topic for each in ranges if each.is_stopped}
    kept = {key: offset for key, offset in positions.next_offsets.items() if key[0] not in stopped}
    return json.dumps(by_topic(kept))
