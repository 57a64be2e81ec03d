"""Reading committed records only: where each log ends then, and what its tasks have to know."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace

from kafkalog.columns.transaction_walk import stable_offset
from kafkalog.errors import CorruptDataError
from kafkalog.spark.options import ISOLATED_VIEWS, Isolation, Mode, ReadOptions
from kafkalog.storage.log_dir import PartitionLog, with_own_checkpoints, with_segments_of_now
from kafkalog.storage.oldest_log import is_oldest_layout
from kafkalog.storage.read_plan import CommittedRead

_logger = logging.getLogger(__name__)


def committed_read(logs: Sequence[PartitionLog], options: ReadOptions) -> CommittedRead | None:
    """How committed records are read from a log, which is the first of its replicas; None where
    all records are asked for, or where there are no transactions.

    What keeps the last stable offset from the end is logged. Raises CorruptDataError where damage
    behind it may hide that it is further on, in mode FAILFAST.
    """
    if options.isolation is Isolation.READ_UNCOMMITTED or options.view not in ISOLATED_VIEWS:
        return None
    if is_oldest_layout(logs[0]):
        return None
    whole = [_whole(log) for log in logs]
    stable = stable_offset(whole[0])
    if stable.holders:
        oldest = stable.holders[0]
        _logger.warning(
            "read_committed: %s is read up to its last stable offset %d: producer %d has a "
            "transaction open since offset %s",
            logs[0].name,
            stable.offset,
            oldest.producer_id,
            oldest.first_offset,
        )
        if stable.damage is not None:
            _report(stable.damage, options.mode)
    return CommittedRead(tuple(map(_for_task, whole)), stable.offset)


def _report(damage: CorruptDataError, mode: Mode) -> None:
    if mode is Mode.FAILFAST:
        raise CorruptDataError(
            damage.fault,
            f"{damage.detail}; it may hide the end of a transaction, and what is behind the last "
            "stable offset is not read",
            position=damage.position,
            path=damage.path,
            base_offset=damage.base_offset,
            advice="mode=PERMISSIVE reads up to that offset",
        )
    _logger.warning("read_committed: damage may hide the end of a transaction: %s", damage)


def _whole(log: PartitionLog) -> PartitionLog:
    """The log with the segments that were not asked for as well: transactions go on in them."""
    now = with_segments_of_now(log, log.path)
    asked = {segment.path for segment in log.segments}
    return now if asked <= {segment.path for segment in now.segments} else log


def _for_task(log: PartitionLog) -> PartitionLog:
    """Small enough for every task: the segments of a directory can be listed there again."""
    own = with_own_checkpoints(log)
    is_in_directory = all(
        os.path.dirname(segment.path) == log.path and segment.base_offset is not None
        for segment in log.segments
    )
    return replace(own, segments=()) if is_in_directory else own
