"""The sum that every account of lag has to make up. F310."""

import numpy as np

from kafkalog.inspection.lag.lag_columns import LAG_PARTS, LagAccounts


def assert_parts_add_up(accounts: LagAccounts) -> None:
    """That the parts are no less than nothing, and the lag is their sum."""
    parts = np.array([getattr(accounts, part) for part in LAG_PARTS[:-1]])
    assert (parts >= 0).all()
    assert (parts.sum(axis=0) - accounts.ahead_of_log == accounts.lag).all()
