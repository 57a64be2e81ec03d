"""Up to which offsets a table of state has been built, and whether a log can go on from there.

Rules: docs/format.md F276 to F280.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

from kafkalog.errors import StatePositionError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.views.planning.table_positions import (
    ASKED,
    BY_PARTITION,
    ELSEWHERE,
    StateSource,
    TablePositions,
)

_ANEW = "--full-refresh rebuilds the state from the logs that are there"


class StateSettings(NamedTuple):
    """What all runs on one table must agree in."""

    isolation_level: str
    keep_tombstones: bool


@dataclass(frozen=True, slots=True)
class StatePositions(TablePositions):
    """What a version of a table of state holds."""

    job: ClassVar[str] = "kafkalog reconstruct_state"
    rows: ClassVar[str] = "state"

    keep_tombstones: bool
    log_start_offsets: Mapping[TopicPartition, int] = field(
        default_factory=dict, metadata=BY_PARTITION
    )

    @property
    def settings(self) -> StateSettings:
        """What all runs on the table have in common."""
        return StateSettings(self.isolation_level, self.keep_tombstones)

    def with_sources(self, sources: Iterable[StateSource]) -> StatePositions:
        """Return the positions after the sources have been read to their ends."""
        read = list(sources)
        epochs = {
            source.key: epoch
            for source in read
            if (epoch := source.leader_epoch_before(source.end_offset)) is not None
        }
        keys = {source.key for source in read}
        kept = {key: epoch for key, epoch in self.leader_epochs.items() if key not in keys}
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

    def without(self, keys: Collection[TopicPartition]) -> StatePositions:
        """Return the positions of the other partitions."""
        starts = self.log_start_offsets.items()
        return replace(
            self.without_partitions(keys),
            log_start_offsets={key: offset for key, offset in starts if key not in keys},
        )


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
    def is_whole(self) -> bool:
        """Whether the table has no row but the run's afterwards."""
        return self.replaced is not None and self.replaced.issuperset(self.positions.next_offsets)

    @property
    def offsets_to_read(self) -> int:
        return sum(self.ends[key] - start for key, start in self.starts.items())


def full_run(
    recorded: StatePositions | None, settings: StateSettings, sources: Sequence[StateSource]
) -> StateRun:
    """Return a run that rebuilds the state of the sources.

    Raises StatePositionError where the table also holds what would not go with it.
    """
    known = StatePositions(*settings) if recorded is None else recorded
    replaced = known.replaced_by(sources)
    kept = known.without(replaced)
    if kept.next_offsets:
        _refuse_other_settings(known.settings, settings)
        for source in sources:
            _refuse_strangers(kept, source)
    starts = {source.key: source.log_start_offset for source in sources}
    return StateRun(
        ends=_ends(sources),
        starts=_not_empty(starts, sources),
        replaced=replaced,
        raised_log_starts={},
        positions=replace(kept, **settings._asdict()).with_sources(sources),
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
    rewritten = positions.rewritten_words(source, position)
    if rewritten is not None:
        raise StatePositionError(f"{source.name}: {rewritten}; {_ANEW}")
    return position


def _refuse_strangers(positions: StatePositions, source: StateSource) -> None:
    """Raise StatePositionError for a partition of another cluster, or of a recreated topic."""
    positions.refuse_other_cluster(source)
    recreated = positions.recreated_words(source)
    if recreated is not None:
        raise StatePositionError(f"{recreated}; {_ANEW}, {ELSEWHERE}")


def _why_behind(source: StateSource, position: int) -> str:
    if source.end_from == ASKED:
        return (
            f"{source.name}: the state at offset {source.end_offset} was requested, the table is "
            f"at {position} already: {ELSEWHERE}, --full-refresh takes this one back"
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
