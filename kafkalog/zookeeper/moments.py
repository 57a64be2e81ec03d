"""Which transaction a moment comes after. Rule: docs/zookeeper.md F420."""

from __future__ import annotations

from kafkalog.errors import DataLossError
from kafkalog.zookeeper.data_dir import DataDir
from kafkalog.zookeeper.log_reading import all_entries, unreported


def zxid_at(data_dir: DataDir, time_ms: int) -> int:
    """Return the last transaction before the first one that is later than a time, by the clocks of
    the leaders. Raises DataLossError if no log reaches back that far."""
    last: int | None = None
    reaches = "it has no transactions"
    for logged in all_entries(data_dir, unreported):
        transaction = logged.transaction
        if transaction.time_ms > time_ms:
            reaches = f"its logs begin at {transaction.time_ms}"
            break
        last = transaction.zxid
    if last is None:
        raise DataLossError(f"{data_dir.path} has no state at {time_ms} ms: {reaches}")
    return last
