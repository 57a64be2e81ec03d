"""What a restore reports: one screen. Rule: docs/restore.md F1065."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from shlex import quote

from kafkalog.questions.restore.inexact import not_exact
from kafkalog.questions.restore.manifest import least_release
from kafkalog.questions.restore.metadata import MIN_IN_SYNC
from kafkalog.questions.restore.nodes import SERVER_PROPERTIES
from kafkalog.questions.restore.planning import RestorePlan
from kafkalog.questions.restore.restoring import Restored
from kafkalog.words import counted, first_names, size_text, time_text

_MOST_LINES = 8
_MOST_NAMES = 5


def screen(found: Restored, target: str | None) -> Iterator[str]:
    """Yield the lines about a restore that was written to a directory, or that is only planned."""
    yield from _what(found)
    yield from _changes(found)
    inexact = [*not_exact(found)]
    yield from _first(inexact, "NOT EXACT")
    if not inexact:
        yield (
            "nothing is known to be missing, and nothing is guessed; cuts are as exact as the "
            "clocks that times are from"
        )
    if target is None:
        yield "nothing is written: this is the plan"
        return
    if found.plan.request.into is None:
        yield from _next_steps(found, target)
    else:
        yield from _steps_into(found, target)


def _what(found: Restored) -> Iterator[str]:
    plan = found.plan
    topics = {each.topic for each in plan.plans}
    groups = {group for each in found.groups.values() for group in each.groups}
    records = sum(each.records for each in plan.plans)
    size = sum(each.bytes for each in plan.plans)
    yield f"as of {time_text(plan.request.as_of_ms)}:"
    yield (
        f"  {counted(len(topics), 'topic')}, {counted(len(plan.plans), 'partition')}, "
        f"{counted(records, 'record')} in {size_text(size)}, {counted(len(groups), 'group')}, "
        f"{counted(len(plan.transactions.ids), 'transactional id')}"
    )
    into = plan.request.into
    if into is not None:
        yield f"  for the cluster of {into.path}, id {into.cluster_id}"
    else:
        yield f"  cluster id {plan.request.cluster_id}, was {plan.sources.best.cluster_id}"


def _changes(found: Restored) -> Iterator[str]:
    plan = found.plan
    cut = [each for each in plan.plans if each.cut < each.old_end]
    offsets = sum(each.old_end - each.cut for each in cut)
    yield (
        f"  cut: {counted(len(cut), 'partition')} end before the copies did; their "
        f"{counted(offsets, 'offset')} beyond the moment are {_used_again(plan)}"
    )
    by_producers = sorted({each.topic for each in plan.plans if each.is_by_producers})
    if by_producers:
        yield (f"  cut by the times that producers gave: {first_names(by_producers, _MOST_NAMES)}")
    commits = sum(each.is_commit for each in plan.ended)
    yield (
        f"  ended: {counted(len(plan.ended), 'open transaction')} in partitions, {commits} "
        f"committed, {len(plan.ended) - commits} aborted"
    )
    clipped = [
        commit for each in found.groups.values() for commit in each.commits if commit.is_clipped
    ]
    yield f"  clipped: {counted(len(clipped), 'commit')} beyond the end of a log"
    yield from _left_out(plan)
    for topic, suppressed in found.left_out_persons:
        yield f"  suppressed: {counted(suppressed.records, 'record')} of topic {topic}"
    if plan.empty:
        names = [f"{topic}-{number}" for topic, number, _ in plan.empty]
        yield f"  begin empty: {first_names(names, _MOST_NAMES)}"
    if plan.request.into is not None:
        return
    lowered = [each for each in plan.metadata.configs if each.config == MIN_IN_SYNC]
    others = len(plan.metadata.configs) - len(lowered)
    yield (
        f"  lowered: min.insync.replicas of {counted(len(lowered), 'resource')}; "
        f"{counted(others, 'config')} changed, most of them so that retention deletes nothing"
    )
    yield f"  Kafka {least_release(plan)} or later opens it"


def _left_out(plan: RestorePlan) -> Iterator[str]:
    """Yield the topics that are left out for each reason, a former one with its id (F925); of those
    that are missing NOT EXACT has the reason."""
    topics = defaultdict(list)
    ids = {row["topic"]: topic_id for (topic_id,), row in plan.image.tables["topic"].items()}
    for each in plan.left_out:
        is_former = each.topic_id not in (None, ids.get(each.topic, each.topic_id))
        name = f"{each.topic}@{each.topic_id}" if is_former else each.topic
        topics[each.reason if each.is_chosen else "see NOT EXACT"].append(name)
    for reason, names in topics.items():
        yield f"  left out: {first_names(sorted(names), _MOST_NAMES)}: {reason}"


def _used_again(plan: RestorePlan) -> str:
    if plan.request.reuses_offsets:
        return "used again: who keeps offsets elsewhere and has read them skips as many new records"
    return f"not used again, nor the next {plan.request.offset_gap:,}"


def _next_steps(found: Restored, target: str) -> Iterator[str]:
    yield "start it:"
    for node in found.plan.request.nodes:
        place = quote(f"{target}/{node.directory}".rstrip("/"))
        yield f"  cd {place} && kafka-server-start.sh {SERVER_PROPERTIES}"
    configs = found.plan.metadata.configs
    in_sync = [each.undo for each in configs if each.config == MIN_IN_SYNC]
    others = [each.undo for each in configs if each.config != MIN_IN_SYNC]
    yield from _first(others, "when you are content, set back")
    yield from _first(in_sync, "not before the partitions have as many replicas as they had")


def _steps_into(found: Restored, target: str) -> Iterator[str]:
    yield from _first([each.command for each in found.configs], "first, so that nothing expires")
    yield "then stop these brokers, all of them before you go on:"
    for node in found.plan.nodes:
        place = f"{target}/{node.log_directory}"
        yield f"  broker {node.node_id}: directories in {place} replace those of the same name"
    yield "and start them; commits of groups are in manifest.json, and in no log"
    yield from _first([each.undo for each in found.configs], "when you are content, set back")


def _first(lines: Sequence[str], head: str) -> Iterator[str]:
    if not lines:
        return
    yield f"{head}:"
    yield from (f"  {line}" for line in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        yield f"  and {len(lines) - _MOST_LINES} more, see manifest.json"
