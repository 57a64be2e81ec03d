"""Which transaction a moment comes after. Rule: docs/zookeeper.md F420."""

from __future__ import annotations

from kafkalog.errors import DataLossError
from kafkalog.storage.files import InputFile
from kafkalog.zookeeper.data_dir import DataDir
from kafkalog.zookeeper.transaction_log import LogEntry, read_transaction_log


def zxid_at(data_dir: DataDir, time_ms: int) -> int:
    """The last transaction before the first one that is later than a time, by the clocks of the
    leaders. Raises DataLossError if no log reaches back that far."""
    earliest: int | None = None
    for log in reversed(data_dir.logs):
        found: int | None = None
        with InputFile(log.path) as file:
            for entry in read_transaction_log(file):
                if not isinstance(entry, LogEntry):
                    continue
                if entry.transaction.time_ms > time_ms:
                    earliest = entry.transaction.time_ms if found is None else earliest
                    break
                found = entry.transaction.zxid
        if found is not None:
            return found
    reaches = "it has no transactions" if earliest is None else f"its logs begin at {earliest}"
    raise DataLossError(f"{data_dir.path} does not tell what there was at {time_ms} ms: {reaches}")
