"""What may be deleted by hand to free space on a disk, least harmful first?

For a broker that does not start because its disk is full. Nothing is deleted here: each step has
the command that does it. Rules: docs/command-line.md F1154 to F1158.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from shlex import quote
from typing import Any, NamedTuple

from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.inspection.logs.replica_facts import continuation
from kafkalog.inspection.partitions.tier_check import IN_TIER, tier_rows
from kafkalog.questions.groups.lag import CommittedOffsets, committed_offsets
from kafkalog.questions.retention import (
    POLICY,
    RetentionPlan,
    RetentionRequest,
    assumed_policy_words,
    retention,
)
from kafkalog.storage.files.files import entries_left
from kafkalog.storage.log_dir.topic_configs import ASSUMED, DELETE_POLICY
from kafkalog.storage.names import (
    BROKERS_TOPICS,
    CLUSTER_METADATA,
    REMOTE_LOG_METADATA,
    partition_name,
    segment_file_name,
)
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.recovery.temporary_files import DELETED
from kafkalog.views.engine import Views
from kafkalog.views.tier_metadata import tier_metadata
from kafkalog.words import counted, first_names, size_text

_KEPT_TOPICS = frozenset((*BROKERS_TOPICS, CLUSTER_METADATA))
_DELETE, _STRAY = "delete", "stray"
_MOST_NAMES = 3


class Harm(Enum):
    """Why something may be deleted, the least harmful reason first."""

    MARKED = "marked"
    PAST_RETENTION = "past_retention"
    IN_TIER = "in_tier"
    REPLICATED = "replicated"
    OLDEST = "oldest"


_WORDS = {
    Harm.MARKED: "marked for deletion: the broker removes it anyway",
    Harm.PAST_RETENTION: "past retention: the broker removes it within minutes",
    Harm.IN_TIER: "in tiered storage: consumers read it from there",
    Harm.REPLICATED: (
        "on another broker: start the brokers that have it first, this one then copies it again; "
        "if it becomes the leader while it is empty, all replicas lose the records"
    ),
    Harm.OLDEST: "LOST: the log then begins later, and consumers go on from there",
}


@dataclass(frozen=True, slots=True)
class FreeRequest:
    """How many bytes are needed, None for a list of all; the time for retention; options with the
    cluster's settings; and the logs of other brokers, which replicas are looked for in."""

    need: int | None
    at_ms: int
    config: Mapping[str, str] = field(default_factory=dict)
    replicas: Sequence[PartitionLog] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """Something that may be deleted: a directory, or the first segments of a log up to
    `start_offset_after`, which is where the log begins then. `groups` have not read all of it.
    `assumed_policy` is the `cleanup.policy` that no file says, and `goes_if` how many bytes are
    past retention if it is right."""

    harm: Harm
    path: str
    bytes: int
    files: int
    commands: tuple[str, ...]
    topic: str | None = None
    partition: int | None = None
    start_offset: int | None = None
    start_offset_after: int | None = None
    newest_timestamp_ms: int | None = None
    groups: tuple[str, ...] = ()
    assumed_policy: str | None = None
    goes_if: int = 0

    @property
    def offsets(self) -> int | None:
        """How many offsets the log no longer has, None where nothing of it is lost."""
        if self.start_offset is None or self.start_offset_after is None:
            return None
        return max(0, self.start_offset_after - self.start_offset)

    def row(self) -> dict[str, Any]:
        """Return the step as a row."""
        return {
            "harm": self.harm.value,
            "topic": self.topic,
            "partition": self.partition,
            "bytes": self.bytes,
            "files": self.files,
            "offsets": self.offsets,
            "start_offset_after": self.start_offset_after,
            "newest_timestamp_ms": self.newest_timestamp_ms,
            "assumed_policy": self.assumed_policy,
            "groups": list(self.groups),
            "path": self.path,
            "commands": list(self.commands),
        }


@dataclass(frozen=True, slots=True)
class FreePlan:
    """The steps to take in their order, how many bytes they are to free, and what was not looked
    at."""

    steps: Sequence[Step]
    need: int | None
    not_known: Sequence[str]

    @property
    def freed(self) -> int:
        return sum(step.bytes for step in self.steps)

    @property
    def is_enough(self) -> bool:
        return self.need is None or self.freed >= self.need

    def words(self) -> list[str]:
        """Return lines: how much is freed for which reason, what is lost, and what is left."""
        return [*self._lines()]

    def _lines(self) -> Iterator[str]:
        need = "" if self.need is None else f" of the {size_text(self.need)} that are needed"
        verb = "frees" if len(self.steps) == 1 else "free"
        yield f"{counted(len(self.steps), 'step')} {verb} {size_text(self.freed)}{need}"
        for harm, words in _WORDS.items():
            steps = [step for step in self.steps if step.harm is harm]
            if steps:
                yield f"{size_text(sum(step.bytes for step in steps))} {words}"
        goes_if = sum(step.goes_if for step in self.steps)
        if goes_if:
            yield (
                f"{size_text(goes_if)} of it is past retention if the assumed cleanup.policy is "
                "right (ASSUMED-POLICY): then the broker removes it by itself"
            )
        unread = sorted({name for step in self.steps for name in step.groups})
        if unread:
            yield (
                f"{counted(len(unread), 'group')} not yet through with what is lost: "
                f"{first_names(unread, _MOST_NAMES)}"
            )
        if not self.is_enough and self.need is not None:
            yield (
                f"NOT ENOUGH: {size_text(self.need - self.freed)} are missing; what is left is the "
                "last segment of each log, compacted topics, and topics of the broker itself: "
                "enlarge the disk, or move whole partition directories to another one"
            )
        yield (
            "stop the broker first; never delete checkpoints, meta.properties, "
            f"{CLUSTER_METADATA} or single files of a segment"
        )
        yield from self.not_known


class _Segment(NamedTuple):
    log: PartitionLog
    number: int
    bytes: int
    files: int
    newest_ms: int | None
    goes: bool | None
    is_compacted: bool
    assumed_policy: str | None


def free(views: Views, request: FreeRequest) -> FreePlan:
    """Return what to delete until enough is freed: by harm, then the largest first, of the oldest
    segments the oldest first."""
    plan = retention(views, RetentionRequest(request.at_ms, request.config))
    segments = _segments(views, plan)
    commits = committed_offsets(views)
    in_tier, not_known = _in_tier(views)
    not_known += _set_aside(views)
    taken: dict[str, int] = {}
    freed: Counter[str] = Counter()
    steps: list[Step] = []
    missing = request.need
    for found in (
        _marked(views),
        _prefixes(Harm.PAST_RETENTION, segments, taken, _goes),
        _prefixes(Harm.IN_TIER, segments, taken, lambda each: _path(each) in in_tier),
        _replicated(views, freed, request.replicas),
        _oldest(segments, taken, commits),
    ):
        for step in found:
            if missing is not None and missing <= 0:
                break
            steps.append(step)
            freed[step.path] += step.bytes
            if step.harm is Harm.REPLICATED:
                taken[step.path] = LARGEST_OFFSET
            elif step.start_offset_after is not None:
                taken[step.path] = step.start_offset_after
            if missing is not None:
                missing -= step.bytes
    if any(step.harm is not Harm.MARKED for step in steps):
        not_known += assumed_policy_words(plan.topics, has_metadata=plan.has_metadata)
    if any(step.harm in (Harm.REPLICATED, Harm.OLDEST) for step in steps):
        not_known += _unknown_retention(plan)
    return FreePlan(_joined(steps), request.need, not_known)


def _unknown_retention(plan: RetentionPlan) -> Iterator[str]:
    """Yield a line about topics whose retention is not known: some of what a step removes may be
    what the broker removes by itself."""
    topics = [
        each
        for each in plan.topics
        if each.bytes_unknown
        and each.missing_settings - {POLICY}
        and each.segments > 1
        and each.topic not in _KEPT_TOPICS
    ]
    if topics:
        names = sorted({name for each in topics for name in each.missing_settings - {POLICY}})
        yield (
            f"past_retention is not known of {counted(len(topics), 'topic')} for want of "
            f"{', '.join(names)}: --server-properties gives them"
        )


def _segments(views: Views, plan: RetentionPlan) -> list[list[_Segment]]:
    """Return the segments of each log that may lose some, without the last one."""
    rows = {row["file"]: row for row in plan.rows}
    found = []
    for log in views.logs:
        if not _may_lose(log):
            continue
        sizes = _sizes(log.path)
        cleaned = log.topic_partition in log.log_dir.cleaner_checkpoints
        own = []
        for number, segment in enumerate(log.segments[:-1]):
            row = rows.get(segment.path, {})
            policy = row.get("cleanup_policy")
            is_compacted = DELETE_POLICY not in policy if policy else cleaned
            stem = os.path.basename(segment.path).removesuffix(".log")
            size, files = sizes.get(stem, (segment.size, 1))
            is_assumed = row.get("cleanup_policy_from") == ASSUMED
            assumed = policy if is_assumed else None
            newest, goes = row.get("largest_timestamp_ms"), row.get("goes")
            own.append(_Segment(log, number, size, files, newest, goes, is_compacted, assumed))
        found.append(own)
    return found


def _goes(segment: _Segment) -> bool:
    """Return whether the broker removes a segment by itself: one is not called harmless to remove
    for a policy that is only assumed."""
    return bool(segment.goes) and segment.assumed_policy is None


def _may_lose(log: PartitionLog) -> bool:
    return log.is_live and log.topic not in _KEPT_TOPICS and log.topic_partition is not None


def _sizes(directory: str) -> dict[str, tuple[int, int]]:
    """Return the bytes and the number of the files of each segment, by the stem of their names."""
    found: dict[str, tuple[int, int]] = {}
    for entry in entries_left(directory):
        name = segment_file_name(entry.name)
        if name is not None and not name.mark:
            size, files = found.get(name.stem, (0, 0))
            found[name.stem] = size + entry.size, files + 1
    return found


def _path(segment: _Segment) -> str:
    return segment.log.segments[segment.number].path


def _marked(views: Views) -> list[Step]:
    """Return the directories and files that a broker has marked. Rule: F1155."""
    steps = []
    for log_dir in sorted({log.log_dir.path for log in views.logs}):
        for entry in entries_left(log_dir):
            name = partition_name(entry.name) if entry.is_directory else None
            if name is not None and name.mark == _DELETE:
                inside = entries_left(entry.path)
                size = sum(each.size for each in inside)
                command = f"rm -r {quote(entry.path)}"
                steps.append(
                    Step(Harm.MARKED, entry.path, size, len(inside), (command,), name.topic)
                )
    for log in views.logs:
        marked = [each for each in entries_left(log.path) if each.name.endswith(DELETED)]
        if marked:
            size, command = sum(each.size for each in marked), f"rm {quote(log.path)}/*{DELETED}"
            place = log.topic, log.partition
            steps.append(Step(Harm.MARKED, log.path, size, len(marked), (command,), *place))
    return sorted(steps, key=lambda step: -step.bytes)


def _prefixes(
    harm: Harm,
    segments: Sequence[Sequence[_Segment]],
    taken: Mapping[str, int],
    is_meant: Callable[[_Segment], bool],
) -> Iterator[Step]:
    """Yield the first segments of each log, as far as all of them are meant, the largest first."""
    found = []
    for own in segments:
        first = []
        for each in _left(own, taken):
            if not is_meant(each):
                break
            first.append(each)
        if first:
            found.append(_step(harm, first))
    yield from sorted(found, key=lambda step: -step.bytes)


def _left(own: Sequence[_Segment], taken: Mapping[str, int]) -> list[_Segment]:
    return [
        each
        for each in own
        if (each.log.segments[each.number].base_offset or 0) >= taken.get(each.log.path, -1)
    ]


def _step(harm: Harm, segments: Sequence[_Segment], groups: tuple[str, ...] = ()) -> Step:
    log = segments[0].log
    last = log.segments[segments[-1].number]
    start = log_bounds(log, EndRule.LOG_END).start_offset
    first = max(start, log.segments[segments[0].number].base_offset or 0)
    times = [each.newest_ms for each in segments if each.newest_ms is not None]
    commands = tuple(f"rm {quote(_path(each).removesuffix('log'))}*" for each in segments)
    return Step(
        harm,
        log.path,
        sum(each.bytes for each in segments),
        sum(each.files for each in segments),
        commands,
        log.topic,
        log.partition,
        None if harm is Harm.IN_TIER else first,
        last.next_base_offset,
        max(times, default=None),
        groups,
        segments[0].assumed_policy,
        sum(each.bytes for each in segments if each.goes and each.assumed_policy),
    )


def _replicated(
    views: Views, freed: Mapping[str, int], replicas: Sequence[PartitionLog]
) -> Iterator[Step]:
    """Yield the directories of partitions that another broker has whole, with what earlier steps
    leave of them. Rule: F1157."""
    others: dict[TopicPartition | None, list[PartitionLog]] = defaultdict(list)
    for log in replicas:
        if log.is_live:
            others[log.topic_partition].append(log)
    found = []
    for log in views.logs:
        if _may_lose(log) and any(_has_all(log, other) for other in others[log.topic_partition]):
            inside = entries_left(log.path)
            size = sum(each.size for each in inside) - freed.get(log.path, 0)
            command = f"rm -r {quote(log.path)}"
            place = log.topic, log.partition
            found.append(Step(Harm.REPLICATED, log.path, size, len(inside), (command,), *place))
    yield from sorted(found, key=lambda step: -step.bytes)


def _has_all(log: PartitionLog, other: PartitionLog) -> bool:
    """Return whether another replica begins no later, and continues this one."""
    if not other.segments or other.path == log.path:
        return False
    starts = [log_bounds(each, EndRule.LOG_END).start_offset for each in (log, other)]
    return starts[1] <= starts[0] and continuation(log, other) is None


def _oldest(
    segments: Sequence[Sequence[_Segment]], taken: Mapping[str, int], commits: CommittedOffsets
) -> Iterator[Step]:
    """Yield segments, the oldest of all logs first, one by one, each log from its beginning."""
    found = []
    for own in segments:
        newest = -1
        for each in _left(own, taken):
            if each.is_compacted:
                break
            newest = max(newest, each.newest_ms or 0)
            found.append((newest, each.log.path, each.number, each))
    for _, _, _, each in sorted(found, key=lambda item: item[:3]):
        if each.log.path in taken and not _left([each], taken):
            continue
        yield _step(Harm.OLDEST, [each], _unread(each, commits))


def _unread(segment: _Segment, commits: CommittedOffsets) -> tuple[str, ...]:
    """Return the groups whose committed offset lies below the end of a segment."""
    end = segment.log.segments[segment.number].next_base_offset or 0
    place = segment.log.topic_partition
    return tuple(
        sorted(
            key.group_id
            for (key, topic, partition), offset in commits.items()
            if (topic, partition) == place and offset < end
        )
    )


def _joined(steps: Sequence[Step]) -> list[Step]:
    """Return the steps with those of one log and one harm as one."""
    found: dict[tuple[Harm, str], list[Step]] = defaultdict(list)
    for step in steps:
        found[step.harm, step.path].append(step)
    return [_one(each) for each in found.values()]


def _one(steps: Sequence[Step]) -> Step:
    first, last = steps[0], steps[-1]
    if len(steps) == 1:
        return first
    times = [each.newest_timestamp_ms for each in steps if each.newest_timestamp_ms is not None]
    return Step(
        first.harm,
        first.path,
        sum(step.bytes for step in steps),
        sum(step.files for step in steps),
        tuple(command for step in steps for command in step.commands),
        first.topic,
        first.partition,
        first.start_offset,
        last.start_offset_after,
        max(times, default=None),
        tuple(sorted({name for step in steps for name in step.groups})),
        first.assumed_policy,
        sum(step.goes_if for step in steps),
    )


def _in_tier(views: Views) -> tuple[set[str], list[str]]:
    """Return the log files that are safe in tiered storage, by its metadata, and what hides that.
    Rule: F1156."""
    logs = list(views.logs)
    if not any(log.topic == REMOTE_LOG_METADATA for log in logs):
        return set(), []
    metadata = tier_metadata(views)
    rows = tier_rows(
        list(metadata.remote.segments.values()),
        None,
        logs,
        is_whole=not metadata.gaps,
        hides_changes=metadata.hides_changes,
    )
    words = [f"tiered storage: {REMOTE_LOG_METADATA} is not whole: {gap}" for gap in metadata.gaps]
    return {row.path for row in rows if row.state == IN_TIER and row.path is not None}, words


def _set_aside(views: Views) -> list[str]:
    """Return a line about directories that a broker has set aside: it never removes them, and they
    can be what is left of a topic."""
    names = [
        entry.path
        for log_dir in sorted({log.log_dir.path for log in views.logs})
        for entry in entries_left(log_dir)
        if entry.is_directory
        and (name := partition_name(entry.name)) is not None
        and name.mark == _STRAY
    ]
    if not names:
        return []
    return [
        f"left alone: {first_names(names, _MOST_NAMES)}: a broker has set these aside and never "
        "removes them; kafkalog undelete restores what is in them"
    ]
