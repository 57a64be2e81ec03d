"""What a broker would do at its next start, by logs and by the files beside them."""

from __future__ import annotations

from collections.abc import Mapping

from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.questions.checks import Checks, with_sound_files
from kafkalog.questions.node_start import NODES
from kafkalog.questions.recovery import RecoveryRequest, recovery_plan
from kafkalog.report.contents import StartSection, as_rows
from kafkalog.views.engine import Views
from kafkalog.views.options.options import Shutdown

# What is known of so many files goes to tasks.
_MOST_KNOWN = 10_000


def read_start(
    views: Views, checked: Checks, *, at_ms: int, config: Mapping[str, str], most: int
) -> StartSection | None:
    """Return the nodes, rows of table `node_starts`; what to say about each, with the lines that
    mend it; and the first `most` partitions that lose something, rows of table `recovery_plan`.
    None without a log. Files in which `checked` has found nothing are not read again for damage."""
    if not views.logs:
        return None
    is_small = sum(len(log.segments) for log in views.logs) <= _MOST_KNOWN
    settings = RecoveryRequest(
        Shutdown.AS_FOUND.value,
        INDEX_INTERVAL_BYTES,
        at_ms,
        config=config,
        logs=with_sound_files(views.logs, checked.report) if is_small else None,
    )
    found = recovery_plan(views, settings)
    return StartSection(
        as_rows(found.rows(NODES)),
        list(found.nodes.lines()),
        as_rows(found.findings[:most]),
        len(found.findings),
        found.words(),
        has_findings=found.has_findings,
    )
