"""Views `transactions` and `stable_offsets`: schemas/tables/transactions.json and
schemas/tables/stable_offsets.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kafkalog.columns.batches.fault_details import lost_end
from kafkalog.columns.table_rows import TableRow
from kafkalog.columns.transactions.transaction_walk import TransactionWalk, stable_offset
from kafkalog.errors import CorruptDataError
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.inspection.logs.past_ends import past_end
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_snapshots import snapshot_entries
from kafkalog.storage.reading.transactions import PartitionTransaction


@dataclass(frozen=True, slots=True)
class PastTime:
    """A past time, as of which transactions are judged; `now_ms` is the clock of whoever asks."""

    at_ms: int
    now_ms: int


def view_transaction_rows(
    log: PartitionLog, past: PastTime | None, on_damage: Callable[[CorruptDataError], None]
) -> Iterator[TableRow]:
    """Yield a row per transaction of the log, those that have ended in the order of their markers,
    then the open ones: now, or at a past time, when those that have ended since were open (F1322).
    There is no row if what the log was then is not known. `on_damage` hears of what was passed
    over, and may raise; payloads are not looked at."""
    if not log.segments:
        _report_lost_end(log, log.log_start, on_damage)
        return
    base_offset = log.segments[0].base_offset or 0
    entries = snapshot_entries(log, base_offset) or ()
    end = LARGEST_OFFSET if past is None else past_end(log, past.at_ms, past.now_ms)
    at_ms = 0 if past is None else past.at_ms
    walk = TransactionWalk(log, base_offset, entries, until_offset=end or 0)
    ended_since = []
    for ended in walk.ended():
        if end is not None and (ended.marker_offset or 0) < end:
            yield _row(ended, "aborted" if ended.is_aborted else "committed", at_ms)
        elif ended.first_offset is not None:
            ended_since.append(ended)
    for damage in walk.damages:
        on_damage(damage)
    _report_lost_end(log, walk.log_end, on_damage)
    if end is not None:
        for was_open in (*ended_since, *walk.still_open.by_producer.values()):
            yield _row(was_open, "open", at_ms)


def _report_lost_end(
    log: PartitionLog, log_end: int, on_damage: Callable[[CorruptDataError], None]
) -> None:
    lost = lost_end(log, log_end)
    if lost is not None:
        on_damage(lost)


def _row(found: PartitionTransaction, outcome: str, at_ms: int) -> TableRow:
    marker = found.marker
    started_ms = found.first_timestamp_ms
    end_ms = marker.timestamp_ms if marker and outcome != "open" else at_ms
    return {
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "outcome": outcome,
        "first_offset": found.first_offset,
        "last_offset": found.last_offset,
        "began_earlier": found.began_earlier,
        "batches": found.batches,
        "records": found.records,
        "bytes": found.bytes,
        "first_timestamp_ms": started_ms,
        "last_timestamp_ms": found.last_timestamp_ms,
        "duration_ms": end_ms - started_ms if end_ms and started_ms is not None else None,
        "marker_offset": found.marker_offset,
        "marker_epoch": found.marker_epoch,
        "coordinator_epoch": marker.coordinator_epoch if marker else None,
        "marker_timestamp_ms": marker.timestamp_ms if marker else None,
        "first_file": found.file,
        "marker_file": found.marker_file,
    }


def stable_offset_row(log: PartitionLog, past: PastTime | None = None) -> TableRow:
    """Return the last stable offset of the log, and who holds it, now or at a past time. The row is
    empty if what the log was then is not known."""
    end = None
    if past is not None:
        end = past_end(log, past.at_ms, past.now_ms)
        if end is None:
            return {}
    stable = stable_offset(log, past_end=end)
    holder = stable.holders[0] if stable.holders else None
    return {
        "last_stable_offset": stable.offset,
        "high_watermark": stable.high_watermark,
        "end_offset": stable.end_offset,
        "offsets_held_back": stable.end_offset - stable.offset,
        "open_transactions": len(stable.holders),
        "holder_producer_id": holder and holder.producer_id,
        "holder_producer_epoch": holder and holder.producer_epoch,
        "holder_first_offset": holder and holder.first_offset,
        "holder_last_timestamp_ms": holder and holder.last_timestamp_ms,
        "damage": None if stable.damage is None else str(stable.damage),
    }
