"""What a broker would do at its next start, by logs and by the files beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.questions.node_start import NODES
from kafkalog.questions.recovery import RecoveryRequest, recovery_plan
from kafkalog.report.contents import StartSection, as_rows
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Views
from kafkalog.views.options.options import Shutdown


def read_start(
    views: Views,
    known: Sequence[PartitionLog] | None,
    *,
    at_ms: int,
    config: Mapping[str, str],
    most: int,
) -> StartSection | None:
    """Return the nodes, rows of table `node_starts`; what to say about each, with the lines that
    mend it; and the first `most` partitions that lose something, rows of table `recovery_plan`.
    None without a log. `known` are the logs with what is known of their files."""
    if not views.logs:
        return None
    settings = RecoveryRequest(
        Shutdown.AS_FOUND.value, INDEX_INTERVAL_BYTES, at_ms, config=config, logs=known
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
