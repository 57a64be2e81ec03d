"""What the coordinators of transactions and of share groups make of their partitions when they load
them. Rules: docs/format.md F1006 and F1007.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkalog.coordination.groups.group_loading import LoadError

Values = Mapping[str, Any]
_EMPTY, _LAST_STATUS = 0, 7
_SHARE_UPDATE = "ShareUpdate"


class TransactionLoad:
    """Replays the records of a partition of `__transaction_state`."""

    def knows(self, record_name: str) -> bool:
        """Return whether the coordinator reads records of a type."""
        return True

    def replay(self, record_name: str, key: Values, value: Values | None) -> None:
        """Take a record. Raises LoadError where the coordinator stops."""
        if value is None:
            return
        status = value["transactionStatus"]
        if not _EMPTY <= status <= _LAST_STATUS:
            raise LoadError(f"no state of a transaction has the number {status}")
        if status != _EMPTY and value["transactionPartitions"] is None:
            raise LoadError("a transaction with a state has no list of partitions")


class ShareLoad:
    """Replays the records of a partition of `__share_group_state`."""

    def knows(self, record_name: str) -> bool:
        """Return whether the coordinator reads records of a type."""
        return True

    def replay(self, record_name: str, key: Values, value: Values | None) -> None:
        """Take a record. Raises LoadError where the coordinator stops."""
        if record_name == _SHARE_UPDATE and value is None:
            raise LoadError("an update of a share group's state has no value")
