"""The sum that every account of lag has to make up. F310."""

from __future__ import annotations

import numpy as np

from kafkalog.columns.lag_account import LagAccounts

PARTS = (
    "readable_records",
    "control_records",
    "aborted_records",
    "gaps",
    "beyond_last_stable",
    "below_log_start",
    "in_tiered_storage",
    "damaged",
)


def assert_parts_add_up(accounts: LagAccounts) -> None:
    """That the parts are no less than nothing, and the lag is their sum."""
    parts = np.array([getattr(accounts, part) for part in PARTS])
    assert (parts >= 0).all()
    assert (parts.sum(axis=0) - accounts.ahead_of_log == accounts.lag).all()
