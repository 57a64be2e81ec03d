"""What brokers would do with what a restore has written, judged before it gets its name.

Of the plan only what `Written` has is needed then: of many partitions both take much memory. Rule:
docs/restore.md F1279.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalog.errors import LogDirError
from kafkalog.questions.recovery import RecoveryRequest, recovery_plan
from kafkalog.questions.restore.partitions.read_back import ReadBack
from kafkalog.questions.restore.restoring import Restored
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Views
from kafkalog.words import first_names

_MOST_NAMES = 5


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
