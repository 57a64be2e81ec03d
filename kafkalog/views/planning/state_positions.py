"""Up to which offsets a table of state has been built, and whether a log can go on from there.

Rules: docs/format.md F276 to F280.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafkalog.errors import StatePositionError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.offset_ranges import DoubtfulRecord, TimeRule, doubt_words
from kafkalog.storage.reading.read_plan import CommittedRead
from kafkalog.views.options.offset_options import by_partition, by_topic
from kafkalog.words import counted

_WRITER = "kafkalog reconstruct_state"
# Where a read ends whose end was requested.
ASKED = "asked"
_ANEW = "--full-refresh rebuilds the state from the logs that are there"
_ELSEWHERE = "another --output-dir keeps both"


@dataclass(frozen=True, slots=True)
class StateSource:
    """A partition as it is found: the offsets [log_start_offset, end_offset) make up its state.

    `start_offset` is the first that is requested; `segments` are those of the replica that counts,
    `logs` all replicas as they were listed.
    `cleaner_checkpoint` is None where the cleaner has not been; `end_from` says what the end is:
    log_end, high_watermark, last_stable_offset or asked. `committed` is what reading only committed
    records up to there needs to know. `passed_over` are the records whose time is doubtful by the
    `time_rule`, so that they did not bound the range (F930). `log` is the replica that counts.
    """

    topic: str
    partition: int
    log_start_offset: int
    end_offset: int
    end_from: str = "log_end"
    log_end_offset: int = 0
    cleaner_checkpoint: int | None = None
    cluster_id: str | None = None
    broker_id: int | None = None
    input_path: str = ""
    topic_id: str | None = None
    leader_epochs: tuple[EpochStart, ...] = ()
    start_offset: int = 0
    segments: Sequence[SegmentFile] = ()
    logs: tuple[PartitionLog, ...] = ()
    committed: CommittedRead | None = None
    passed_over: tuple[DoubtfulRecord, ...] = ()
    time_rule: TimeRule | None = None
    log: PartitionLog | None = None

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def exact_from_offset(self) -> int:
        """From which end on the files hold all that counts: below, values may be cleaned away."""
        return max(self.log_start_offset, self.cleaner_checkpoint or 0)

    @property
    def is_exact(self) -> bool:
        return self.end_offset >= self.exact_from_offset

    @property
    def doubt(self) -> str:
        """Return what to report of a state that is not exact."""
        return (
            f"NOT EXACT: {self.name} at offset {self.end_offset}: the cleaner has been there, and "
            f"older values may be missing; exact from offset {self.exact_from_offset} on"
        )

    @property
    def wrong_times(self) -> str | None:
        """Say which records were passed over, None without any."""
        return self.words_for(self.passed_over)

    def words_for(self, found: Sequence[DoubtfulRecord]) -> str | None:
        """Say what is doubtful about the times of some of these records, None without any."""
        if not found or self.time_rule is None:
            return None
        first = f"offset {found[0].offset}: {doubt_words(found[0], self.time_rule)}"
        if len(found) == 1:
            return first
        others = counted(len(found) - 1, "record")
        return f"{first}; and {others} more with such times up to offset {found[-1].offset}"

    def leader_epoch_before(self, offset: int) -> int | None:
        """Return the leader epoch of the record before an offset, None if the files do not say."""
        epochs = [each.epoch for each in self.leader_epochs if each.start_offset < offset]
        return epochs[-1] if epochs else None


@dataclass(frozen=True, slots=True)
class StateSettings:
    """What all runs on one table must agree in."""

    isolation_level: str
    keep_tombstones: bool


@dataclass(frozen=True, slots=True)
class StatePositions:
    """What a version of the table holds: of each partition all below its next offset."""

    settings: StateSettings
    cluster_id: str | None = None
    next_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    log_start_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the text that goes into the table's commit."""
        return json.dumps(
            {
                "job": _WRITER,
                "cluster_id": self.cluster_id,
                "isolation_level": self.settings.isolation_level,
                "keep_tombstones": self.settings.keep_tombstones,
                "next_offsets": by_topic(self.next_offsets),
                "log_start_offsets": by_topic(self.log_start_offsets),
                "leader_epochs": by_topic(self.leader_epochs),
                "topic_ids": dict(sorted(self.topic_ids.items())),
            }
        )

    def with_sources(self, sources: Iterable[StateSource]) -> StatePositions:
        """Return the positions after the sources have been read to their ends."""
        read = list(sources)
        epochs = {
            source.key: epoch
            for source in read
            if (epoch := source.leader_epoch_before(source.end_offset)) is not None
        }
        kept = {key: epoch for key, epoch in self.leader_epochs.items() if key not in _keys(read)}
        return replace(
            self,
            cluster_id=next(filter(None, (each.cluster_id for each in read)), self.cluster_id),
            next_offsets={**self.next_offsets, **{each.key: each.end_offset for each in read}},
            log_start_offsets={
                **self.log_start_offsets,
                **{each.key: each.log_start_offset for each in read},
            },
            leader_epochs={**kept, **epochs},
            topic_ids={
                **self.topic_ids,
                **{each.topic: each.topic_id for each in read if each.topic_id},
            },
        )

    def without(self, keys: Iterable[TopicPartition]) -> StatePositions:
        """Return the positions of the other partitions."""
        left_out = set(keys)

        def kept(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
            return {key: offset for key, offset in offsets.items() if key not in left_out}

        next_offsets = kept(self.next_offsets)
        topics = {topic for topic, _ in next_offsets}
        return replace(
            self,
            cluster_id=self.cluster_id if topics else None,
            next_offsets=next_offsets,
            log_start_offsets=kept(self.log_start_offsets),
            leader_epochs=kept(self.leader_epochs),
            topic_ids={topic: each for topic, each in self.topic_ids.items() if topic in topics},
        )


def state_positions_from_json(text: str | None) -> StatePositions | None:
    """Return the positions in a commit's text; None where it is not this job's."""
    found = written_by(_WRITER, text)
    if found is None:
        return None
    return StatePositions(
        StateSettings(found["isolation_level"], found["keep_tombstones"]),
        found["cluster_id"],
        by_partition(found["next_offsets"]),
        by_partition(found["log_start_offsets"]),
        by_partition(found["leader_epochs"]),
        found["topic_ids"],
    )


def written_by(job: str, text: str | None) -> dict[str, Any] | None:
    """Return what a job has written into a commit's text; None where it is not this job's."""
    try:
        found = json.loads(text or "")
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("job") == job else None


def _keys(sources: Iterable[StateSource]) -> set[TopicPartition]:
    return {source.key for source in sources}


@dataclass(frozen=True, slots=True)
class StateRun:
    """What a run is to do.

    `ends`: the next offset of every partition that is there. `starts`: from where to read those
    that have something new. `replaced`: whose rows the result takes the place of, None where it is
    merged into what is there. `raised_log_starts`: where the log start has risen, so that rows
    below it are no longer state. `positions`: what the table holds afterwards.
    """

    ends: Mapping[TopicPartition, int]
    starts: Mapping[TopicPartition, int]
    replaced: frozenset[TopicPartition] | None
    raised_log_starts: Mapping[TopicPartition, int]
    positions: StatePositions

    @property
    def has_work(self) -> bool:
        return bool(self.starts or self.raised_log_starts) or self.replaced is not None

    @property
    def offsets_to_read(self) -> int:
        return sum(self.ends[key] - start for key, start in self.starts.items())


def full_run(
    recorded: StatePositions | None, settings: StateSettings, sources: Sequence[StateSource]
) -> StateRun:
    """Return a run that rebuilds the state of the sources.

    Raises StatePositionError where the table also holds what would not go with it.
    """
    known = StatePositions(settings) if recorded is None else recorded
    replaced = _keys(sources)
    for source in sources:
        if _is_stranger(known, source):
            replaced |= {key for key in known.next_offsets if key[0] == source.topic}
    kept = known.without(replaced)
    if kept.next_offsets:
        _refuse_other_settings(known.settings, settings)
        for source in sources:
            _refuse_strangers(kept, source)
    starts = {source.key: source.log_start_offset for source in sources}
    return StateRun(
        ends=_ends(sources),
        starts=_not_empty(starts, sources),
        replaced=frozenset(replaced),
        raised_log_starts={},
        positions=replace(kept, settings=settings).with_sources(sources),
    )


def incremental_run(
    recorded: StatePositions, settings: StateSettings, sources: Sequence[StateSource]
) -> StateRun:
    """Return a run that reads what is new since the recorded positions.

    Raises StatePositionError where the table cannot go on with what is there.
    """
    _refuse_other_settings(recorded.settings, settings)
    starts = {source.key: _start_offset(recorded, source) for source in sources}
    return StateRun(
        ends=_ends(sources),
        starts=_not_empty(starts, sources),
        replaced=None,
        raised_log_starts={
            source.key: source.log_start_offset
            for source in sources
            if source.log_start_offset > recorded.log_start_offsets.get(source.key, 0)
            and source.key in recorded.next_offsets
        },
        positions=recorded.with_sources(sources),
    )


def _ends(sources: Iterable[StateSource]) -> dict[TopicPartition, int]:
    return {source.key: source.end_offset for source in sources}


def _not_empty(
    starts: Mapping[TopicPartition, int], sources: Iterable[StateSource]
) -> dict[TopicPartition, int]:
    ends = _ends(sources)
    return {key: start for key, start in starts.items() if start < ends[key]}


def _refuse_other_settings(recorded: StateSettings, requested: StateSettings) -> None:
    if recorded != requested:
        raise StatePositionError(
            f"the table was built with {_named(recorded)}, this run has {_named(requested)}: "
            f"ask for the same; {_ANEW}"
        )


def _named(settings: StateSettings) -> str:
    tombstones = "with" if settings.keep_tombstones else "without"
    return f"--isolation-level {settings.isolation_level} {tombstones} --keep-tombstones"


def _start_offset(positions: StatePositions, source: StateSource) -> int:
    _refuse_strangers(positions, source)
    position = positions.next_offsets.get(source.key)
    if position is None:
        return source.log_start_offset
    if source.end_offset < position:
        raise StatePositionError(_why_behind(source, position))
    if source.log_start_offset > position:
        raise StatePositionError(
            f"{source.name} begins at offset {source.log_start_offset}, the table ends at "
            f"{position}: what was between them was deleted before it was read, and keys in it may "
            f"have changed; {_ANEW}"
        )
    _refuse_rewritten(positions, source, position)
    return position


def _is_stranger(positions: StatePositions, source: StateSource) -> bool:
    return is_other(positions.cluster_id, source.cluster_id) or is_other(
        positions.topic_ids.get(source.topic), source.topic_id
    )


def is_other(recorded: str | None, found: str | None) -> bool:
    """Return whether two ids, of a cluster or a topic, are known and differ."""
    return bool(recorded and found and recorded != found)


def _refuse_strangers(positions: StatePositions, source: StateSource) -> None:
    """Raise StatePositionError for a partition of another cluster, or of a recreated topic."""
    if is_other(positions.cluster_id, source.cluster_id):
        raise StatePositionError(
            f"the table holds state of cluster {positions.cluster_id}, {source.input_path} is of "
            f"cluster {source.cluster_id}: {_ELSEWHERE}"
        )
    topic_id = positions.topic_ids.get(source.topic)
    if is_other(topic_id, source.topic_id):
        raise StatePositionError(
            f"the table holds topic {source.topic} with the id {topic_id}, in {source.input_path} "
            f"it has the id {source.topic_id}: it was deleted and recreated; {_ANEW}, "
            f"{_ELSEWHERE}"
        )


def _why_behind(source: StateSource, position: int) -> str:
    if source.end_from == ASKED:
        return (
            f"{source.name}: the state at offset {source.end_offset} was requested, the table is "
            f"at {position} already: {_ELSEWHERE}, --full-refresh takes this one back"
        )
    ends = f"ends at offset {source.end_offset} ({source.end_from})"
    if source.log_end_offset >= position:
        return (
            f"{source.name} {ends}, the table is at {position} already: it was built with another "
            f"--stop-at, or the mark went back; wait until it has passed, or {_ANEW}"
        )
    return (
        f"{source.name} {ends}, the table is at {position} already: this is an older copy of the "
        f"log, or the log was truncated; give the current one, or {_ANEW}"
    )


def _refuse_rewritten(positions: StatePositions, source: StateSource, position: int) -> None:
    """Raise StatePositionError where the offset before the position is another record by now."""
    recorded = positions.leader_epochs.get(source.key)
    found = source.leader_epoch_before(position)
    if recorded is not None and found is not None and recorded != found:
        raise StatePositionError(
            f"{source.name}: offset {position - 1} is of leader epoch {found}, when the table read "
            f"it it was of {recorded}: the log was truncated and written again; {_ANEW}"
        )
