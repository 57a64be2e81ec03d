"""Reading committed records only: where each log ends then, and what its tasks have to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kafkalog.columns.transactions.transaction_walk import stable_offset
from kafkalog.errors import CorruptDataError
from kafkalog.log_lines import logger
from kafkalog.storage.log_dir.log_dir import with_segments_of_now
from kafkalog.storage.partition_log import PartitionLog, with_own_checkpoints
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.storage.reading.read_plan import CommittedRead
from kafkalog.views.options.options import ISOLATED_VIEWS, Isolation, Mode, ReadOptions

_logger = logger(__name__)


def committed_read(
    logs: Sequence[tuple[PartitionLog, int]], options: ReadOptions
) -> CommittedRead | None:
    """Return how committed records are read from a log, which is the first of its replicas, each
    given with the offset up to which it is of that one's lineage; None where all records are
    requested, or where there are no transactions.

    What keeps the last stable offset from the end is logged. Raises CorruptDataError where damage
    after it may hide that it is further on, in mode FAILFAST.
    """
    if options.isolation is Isolation.READ_UNCOMMITTED or options.view not in ISOLATED_VIEWS:
        return None
    log = logs[0][0]
    if is_oldest_layout(log):
        return None
    whole = _whole(log)
    stable = stable_offset(whole or log, looks_for_damage=options.mode is Mode.FAILFAST)
    if stable.holders:
        oldest = stable.holders[0]
        _logger.warning(
            "read_committed: %s is read up to its last stable offset %d: producer %d has a "
            "transaction open since offset %s",
            log.name,
            stable.offset,
            oldest.producer_id,
            oldest.first_offset,
        )
        if stable.damage is not None:
            raise _hiding(stable.damage)
    for_tasks = [(with_own_checkpoints(log), agreed_end) for log, agreed_end in logs]
    if whole is not None and log.tiered_topic_id is None:
        # Small enough for every task: the segments can be listed there again.
        for_tasks = [(replace(log, segments=()), agreed_end) for log, agreed_end in for_tasks]
    return CommittedRead(tuple(for_tasks), stable.read_end, stable.end_offset)


def _hiding(damage: CorruptDataError) -> CorruptDataError:
    return CorruptDataError(
        damage.fault,
        f"{damage.detail}; it may hide the end of a transaction, and what is from the last "
        "stable offset on is not read",
        position=damage.position,
        path=damage.path,
        base_offset=damage.base_offset,
        advice="mode=PERMISSIVE reads up to that offset",
    )


def _whole(log: PartitionLog) -> PartitionLog | None:
    """Return the log with the segments that were not requested too, for transactions go on in them;
    None for files that a broker would not load."""
    if log.is_live:
        return log
    now = with_segments_of_now(log)
    requested = {segment.path for segment in log.segments}
    return now if requested <= {segment.path for segment in now.segments} else None
