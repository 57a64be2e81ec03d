"""How old the next record of a group is, in milliseconds: the lag in time. Rule: docs/format.md
F315.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import Numbers, fixed_width, scalar

# Parts of a lag that a reader has not had.
_LEFT = ("readable_records", "in_tiered_storage", "damaged")
_ZERO = scalar(0, pa.int64())


def lag_times(rows: pa.Table | Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Return the columns time_lag_ms, freshness_ms and wait_before_commit_ms of an account (F315),
    in milliseconds; `rows` are a table, or its columns, with the account's columns, at_ms and
    commit_timestamp_ms.

    The lag in time is 0 where nothing is left, and otherwise the age of the next record: null
    without its time, and where no integer of 64 bits has the age.
    """
    parts = [Numbers.of(rows[name]) for name in _LEFT]
    has_none = np.logical_and.reduce([part.is_set & (part.values == 0) for part in parts])
    next_ms = Numbers.of(rows["next_timestamp_ms"])
    age = Numbers.of(rows["at_ms"]).minus(next_ms)
    newest, consumed = (
        Numbers.of(rows[name]) for name in ("newest_timestamp_ms", "consumed_timestamp_ms")
    )
    return {
        "time_lag_ms": pc.if_else(fixed_width(has_none, pa.bool_()), _ZERO, age),
        "freshness_ms": newest.minus(next_ms),
        "wait_before_commit_ms": Numbers.of(rows["commit_timestamp_ms"]).minus(consumed),
    }
