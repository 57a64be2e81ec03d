"""Accounts of lag beside the rows of a table that ask for them.

Rules: docs/format.md F310 to F317; columns: schemas/tables/consumer_lag.json.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import chosen, fixed_width, integers
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.lag.lag_account import LagAccounts, lag_accounts
from kafkalog.inspection.lag.lag_bounds import EndFrom, reached_by
from kafkalog.log_lines import logger
from kafkalog.storage.files.files import is_directory
from kafkalog.storage.log_dir.log_dir import find_partitions

_logger = logger(__name__)

# How often a log is listed anew of which a segment goes while it is read.
_MOST_TRIES = 5
ACCOUNT_COLUMNS = tuple(
    field.name for field in fields(LagAccounts) if field.name not in ("is_before_log", "work")
)
_LOG_START, _, _END_FROM, _ = _ABOUT_LOG = ACCOUNT_COLUMNS[:4]
# What a lag is made of. The last one is taken off the sum of the others.
LAG_PARTS = ACCOUNT_COLUMNS[
    ACCOUNT_COLUMNS.index("readable_records") : ACCOUNT_COLUMNS.index("next_offset")
]
# Those in which -1 stands for none.
_OPTIONAL = ACCOUNT_COLUMNS[ACCOUNT_COLUMNS.index("next_offset") :]


def with_accounts(
    rows: pa.Table, path: str | None, *, read_committed: bool, at: str | None = None
) -> pa.Table:
    """Rows about one partition, whose log is at `path`, with `ACCOUNT_COLUMNS`.

    Rows have `committed_offset`, and the moment they are about in a column `at`, in milliseconds;
    without it that is now. The columns are null where there is no log, and where it begins later
    than the moment; of rows without a committed offset all but those about the log.
    """
    moments = None if at is None else _numbers(rows, at)
    committed = _numbers(rows, "committed_offset")
    accounts = accounts_of_now(path, committed, moments, read_committed=read_committed)
    if accounts is None:
        for name in ACCOUNT_COLUMNS:
            rows = rows.append_column(name, pa.nulls(len(rows), _data_type(name)))
        return rows
    is_uncommitted = np.concatenate(
        [_is_null(chunk) for chunk in rows.column("committed_offset").chunks]
    )
    for name in ACCOUNT_COLUMNS:
        rows = rows.append_column(name, _account_column(accounts, name, is_uncommitted))
    return rows


def accounts_of_now(
    path: str | None,
    committed_offsets: LongArray,
    at_ms: LongArray | None,
    *,
    read_committed: bool,
) -> LagAccounts | None:
    """What `lag_accounts` tells of the partition in a directory, None where that is gone: the
    topic was deleted since its logs were looked for. Raises FileNotFoundError where segments go
    faster than they can be read."""
    tries = 0
    while path is not None and is_directory(path):
        (log,) = find_partitions([path], strict=False)
        try:
            reached = None if at_ms is None else reached_by(log, committed_offsets, at_ms)
            return lag_accounts(
                log, committed_offsets, at_ms, reached, read_committed=read_committed
            )
        except FileNotFoundError:
            # Retention or the cleaner was there since the segments were listed.
            tries += 1
            if tries == _MOST_TRIES:
                raise
    if path is not None:
        _logger.warning("%s is not there any more: nothing is told of lag in it", path)
    return None


def _numbers(rows: pa.Table, name: str) -> LongArray:
    """The numbers of a column, 0 for null."""
    return np.concatenate([integers(chunk) for chunk in rows.column(name).fill_null(0).chunks])


def _is_null(chunk: pa.Array) -> BoolArray:
    is_null: BoolArray = chunk.is_null().to_numpy(zero_copy_only=False)
    return is_null


def _data_type(name: str) -> pa.DataType:
    if name == _END_FROM:
        return pa.string()
    return pa.int32() if name == "timestamp_type" else pa.int64()


def _account_column(accounts: LagAccounts, name: str, is_uncommitted: BoolArray) -> pa.Array:
    values = getattr(accounts, name)
    data_type = _data_type(name)
    if name == _END_FROM:
        return chosen([each.name.lower() for each in EndFrom], values, accounts.is_before_log)
    if name == _LOG_START:
        return fixed_width(values, data_type)
    is_null = accounts.is_before_log.copy()
    if name not in _ABOUT_LOG:
        is_null |= is_uncommitted
    if name in _OPTIONAL:
        is_null |= values == NO_VALUE
    return fixed_width(values, data_type, is_null)
