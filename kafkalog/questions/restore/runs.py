"""A restore from its options to the directory that appears, for the command and the job. What
brokers would do with it is judged before it gets its name. Rule: docs/restore.md F1279."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafkalog.coordination.groups.lag_question import is_chosen
from kafkalog.coordination.metadata.releases import is_at_least, started_release
from kafkalog.errors import LogDirError, OptionError, refuse_unknown
from kafkalog.inspection.erasure.suppression import Suppression
from kafkalog.inspection.metadata.new_directory import new_random_id
from kafkalog.questions.recovery import RecoveryRequest, recovery_plan
from kafkalog.questions.restore.inexact import not_exact
from kafkalog.questions.restore.into_cluster import IntoCluster
from kafkalog.questions.restore.manifest import (
    bytes_below,
    file_facts,
    least_release,
    manifest_of,
    write_manifest,
)
from kafkalog.questions.restore.nodes import Node
from kafkalog.questions.restore.partitions.read_back import ReadBack
from kafkalog.questions.restore.planning import (
    UNSEEN_OFFSETS,
    RestorePlan,
    RestoreRequest,
    plan_restore,
)
from kafkalog.questions.restore.report import screen
from kafkalog.questions.restore.restoring import Restored, restored, write_restored
from kafkalog.questions.restore.sources import Sources
from kafkalog.storage.files.output_files import refuse_existing_directory
from kafkalog.storage.files.unreadable_input import unread_from_now
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.files.whole_directory import whole_directory
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.log_dir.read_directories import refuse_inside
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Views
from kafkalog.views.options.restore_options import NodePlace, RestoreOptions
from kafkalog.words import counted, first_names

_MOST_REASONS = 8
_DEFAULT_PLACE = ("127.0.0.1", 9092, 9093)
# A bar for a number of bytes, with a label.
Bar = Callable[[int, str], AbstractContextManager[Any]]
_MOST_NAMES = 5


class _Unseen:
    def update(self, size: int) -> None:
        """Show nothing."""


def no_bar(_size: int, _label: str) -> AbstractContextManager[_Unseen]:
    """Return what shows nothing."""
    return nullcontext(_Unseen())


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options, and what is in the files that they name."""

    given: RestoreOptions
    into: IntoCluster | None = None
    suppression: Suppression | None = None

    @classmethod
    def of(cls, given: RestoreOptions, target: str | None) -> Wanted:
        """Return what the options say, before anything of the copies is read. Raises LogDirError
        for a target that exists, and what reading the files of options raises."""
        given.refuse_contradictions()
        started_release(given.kafka)
        if target is not None:
            refuse_existing_directory("--to", target)
        suppress = given.suppress
        return cls(
            given,
            None if given.into is None else IntoCluster.of(given.into),
            None if suppress is None else Suppression.of_file("--suppress", suppress),
        )


def restore_request(wanted: Wanted, sources: Sources, now_ms: int) -> RestoreRequest:
    """Return the request to this input. Raises OptionError for topics that no copy has and for more
    replicas than nodes."""
    given, into, suppression = wanted.given, wanted.into, wanted.suppression
    known = sources.topics()
    refuse_unknown("--topic", given.topics, known)
    refuse_unknown("--latest-topics", given.latest_topics, known)
    nodes = into.nodes if into else _nodes(given.nodes, given.replication, sources)
    return RestoreRequest(
        sources.covered_by_all_ms if given.as_of is None else given.as_of,
        nodes,
        (sources.best.cluster_id if given.keep_cluster_id else None) or new_random_id(),
        now_ms,
        replication=given.replication,
        into=into,
        links=given.links,
        hashes_inputs=given.hash_inputs,
        creates_missing=given.create_missing,
        reuses_offsets=given.reuse_offsets,
        offset_gap=UNSEEN_OFFSETS if given.offset_gap is None else given.offset_gap,
        keeps_retention=given.keep_retention,
        is_topic_chosen=partial(
            is_chosen, names=frozenset(given.topics), pattern=given.topic_pattern
        ),
        is_group_chosen=partial(is_chosen, names=frozenset(), pattern=given.group_pattern),
        latest_topics=given.latest_topics,
        is_uncut=given.as_of is None and len(sources.coverage) == 1,
        suppression=suppression and suppression.decoding(sources.paths, given.schema_registry),
    )


def _nodes(places: tuple[NodePlace, ...] | None, replication: int, sources: Sources) -> list[Node]:
    if places is None:
        known = [copy.node_id for copy in sources.metadata if copy.node_id is not None]
        places = (NodePlace(min(known, default=1), *_DEFAULT_PLACE),)
    if replication > len(places):
        raise OptionError("--replication", replication, f"up to {len(places)}, for as many nodes")
    return [
        Node(*each, "" if len(places) == 1 else f"node-{each.node_id}", new_random_id())
        for each in places
    ]


def refuse_target(target: str, sources: Sources) -> None:
    """Raise OptionError for a directory in what is read."""
    refuse_inside("--to", target, [*sources.log_dirs, *sources.tier_paths])


def planned(
    views: Views, sources: Sources, wanted: Wanted, now_ms: int, bar: Bar = no_bar
) -> Restored:
    """Return what would be written. Raises LogDirError for a result that would not be exact, where
    --strict is given, with the first reasons, or that the version of --kafka cannot open, and what
    planning raises."""
    request = restore_request(wanted, sources, now_ms)
    with bar(sources.size, "planning") as moved:
        found = restored(plan_restore(views, sources, request, moved.update))
    sources.forget_logs()
    _refuse_release(wanted.given.kafka, found.plan)
    found.input_files = _hashed_inputs(views, found, bar)
    inexact = [*not_exact(found)]
    if wanted.given.strict and inexact:
        reasons = "; ".join(inexact[:_MOST_REASONS])
        if len(inexact) > _MOST_REASONS:
            reasons += f"; and {len(inexact) - _MOST_REASONS} more, which --check names"
        raise LogDirError(
            f"--strict: nothing is written, because the result would not be exact, for "
            f"{counted(len(inexact), 'reason')}: {reasons}"
        )
    return found


def _refuse_release(kafka: str | None, plan: RestorePlan) -> None:
    """Raise LogDirError for a version of Kafka that cannot open the result (F1062)."""
    least = least_release(plan)
    if kafka is not None and not is_at_least(started_release(kafka), least):
        raise LogDirError(
            f"Kafka {kafka} cannot open the result: the features of the cluster need {least} or "
            "later, and nothing lowers them"
        )


def _hashed_inputs(views: Views, found: Restored, bar: Bar) -> dict[str, Any]:
    """Return size and CRC-32C of the input files, by input, if this is requested; null for an
    input in a store."""
    if not found.plan.request.hashes_inputs:
        return {}
    sources = found.plan.sources
    paths = [*sources.log_dirs, *sources.tier_paths]
    local = [path for path in paths if not is_remote(path)]
    with bar(sum(map(bytes_below, local)), "checksums of the input") as moved:
        hashed = {path: dict(file_facts(views, path, moved.update)) for path in local}
    return {path: hashed.get(path) for path in paths}


@dataclass(frozen=True, slots=True)
class Report:
    """The lines of the screen, and whether all is exact and whole."""

    lines: Sequence[str]
    is_exact: bool

    @classmethod
    def of(cls, found: Restored, target: str | None) -> Report:
        """Return the report about a restore that was written to a directory, or is only planned."""
        return cls([*screen(found, target)], not any(True for _ in not_exact(found)))


def written(
    views: Views, sources: Sources, wanted: Wanted, now_ms: int, target: str, bar: Bar = no_bar
) -> Report:
    """Write the directory, judge it, and let it appear. Raises OSError, LogDirError for a directory
    that exists, is not sound, or cannot be read back, and what `planned` raises."""
    found = planned(views, sources, wanted, now_ms, bar)
    size = found.plan.bytes_to_write
    with whole_directory(target, os.fsync) as scratch:
        with bar(size, "writing") as moved:
            write_restored(views, found, scratch, moved.update)
        report = Report.of(found, target)
        # From here on all that is read was written a moment ago.
        failing = unread_from_now()
        with bar(size, "checksums") as moved:
            facts = file_facts(views, scratch, moved.update, found.files)
            write_manifest(manifest_of(found, facts), scratch)
        to_judge = Written.of(found, scratch)
        # Of many partitions there is not memory for the plan and for what judges the result.
        del found, facts
        refuse_unsound(views, to_judge)
        if failing:
            raise LogDirError(
                f"what was written is not kept: {'; '.join(failing.lines()[:_MOST_REASONS])}"
            )
        # Thousands of small files: at once is faster than one after the other.
        os.sync()
    return report


@dataclass(frozen=True, slots=True)
class Written:
    """What was written below `target`: the log directories, and the log `files` that were read
    back, by their paths there. In the `damaged` partitions damage is left out, and a hole in the
    offsets is what is meant to be. Without `is_cluster` there are partitions alone, for a cluster
    that exists."""

    target: str
    log_directories: Sequence[str]
    files: Mapping[str, ReadBack]
    damaged: Collection[tuple[str, int]]
    now_ms: int
    is_cluster: bool

    @classmethod
    def of(cls, found: Restored, target: str) -> Written:
        """Return what there is of a restore that was written."""
        plan = found.plan
        return cls(
            target,
            [os.path.join(target, node.log_directory) for node in plan.nodes],
            found.files,
            {each.key for each in plan.plans if each.lost or each.missing},
            plan.request.now_ms,
            plan.request.into is None,
        )

    def logs(self, paths: Sequence[str]) -> list[PartitionLog]:
        """Return the logs below some directories, with those of their files that are sound."""
        return [self._known(log) for log in find_partitions(paths)]

    def _known(self, log: PartitionLog) -> PartitionLog:
        sound = {}
        for segment in log.segments:
            file = self.files.get(os.path.relpath(segment.path, self.target))
            if file is not None and file.sound is not None:
                sound[segment.path] = file.sound
        return log.knowing(sound)


def refuse_unsound(views: Views, written: Written) -> None:
    """Raise LogDirError where a broker would not start with what was written, or would lose
    anything by that. Of log files that were sound when they were read back, only what a broker
    recovers is read again."""
    if not written.is_cluster:
        # Nothing in them says whose they are: the broker's own directory does.
        for path in written.log_directories:
            _judge(views, written, [path])
        return
    # The nodes start together, and one leads what the others copy.
    _judge(views, written, written.log_directories)


def _judge(views: Views, written: Written, paths: Sequence[str]) -> None:
    request = RecoveryRequest("unclean", 4096, written.now_ms, has_findings_only=True)
    result = recovery_plan(views.over(paths, written.logs(paths)), request)
    refused = [row for row in result.findings if _is_refused(row, written.damaged)]
    if refused:
        names = first_names([f"{row['topic']}-{row['partition']}" for row in refused], _MOST_NAMES)
        raise LogDirError(
            f"what was written is not sound, and is not kept: {names}: {result.totals.words()}"
        )
    if written.is_cluster and result.nodes.has_findings:
        raise LogDirError(
            "what was written does not start, and is not kept: "
            f"{'; '.join(line.strip() for line in result.nodes.lines())}"
        )


def _is_refused(row: Mapping[str, Any], damaged: Collection[tuple[str, int]]) -> bool:
    is_hole = not (row["lost_bytes"] or row["missing_offsets"] or row["padded_time_indexes"])
    is_meant = is_hole and row["broker_starts"] and (row["topic"], row["partition"]) in damaged
    return not is_meant
