"""Accounts of lag beside the rows of a table that ask for them.

Rules: docs/format.md F310 to F317; columns: schemas/tables/consumer_lag.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import Numbers, chosen, fixed_width, integers, present, scalar
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.lag.lag_account import LagAccounts, lag_accounts
from kafkalog.inspection.lag.lag_bounds import EndFrom, KnownCommits
from kafkalog.log_lines import logger
from kafkalog.storage.log_dir.log_dir import logs_of_now
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.relisted_logs import read_relisted

_logger = logger(__name__)

_DELETED = "%s does not exist any more: its lag is unknown"
ACCOUNT_COLUMNS = tuple(
    field.name for field in fields(LagAccounts) if field.name not in ("is_before_log", "work")
)
_LOG_START, _, _END_FROM, _ = _ABOUT_LOG = ACCOUNT_COLUMNS[:4]
# What a lag is made of. The last one is taken off the sum of the others.
LAG_PARTS = ACCOUNT_COLUMNS[
    ACCOUNT_COLUMNS.index("readable_records") : ACCOUNT_COLUMNS.index("next_offset")
]
# Parts of a lag that a reader has not had.
_LEFT = ("readable_records", "in_tiered_storage", "damaged")
_ZERO = scalar(0, pa.int64())
# Columns in which -1 means none.
_OPTIONAL = ACCOUNT_COLUMNS[ACCOUNT_COLUMNS.index("next_offset") :]


def with_accounts(
    rows: pa.Table,
    log: PartitionLog | None,
    *,
    read_committed: bool,
    now_ms: int,
    at: str | None = None,
    known: KnownCommits | None = None,
) -> pa.Table:
    """Return rows about one partition with `ACCOUNT_COLUMNS`, given its log, or None if the input
    does not have it. `known` are all commits for the partition, the rows' own where it is None.

    Rows have `committed_offset`, and the time they are about in a column `at`, in milliseconds;
    without it that is now, `now_ms`. The columns are null without a log, and where it
    begins later than the time; of rows without a committed offset all but those about the log.
    """
    moments = None if at is None else _numbers(rows, at)
    committed = _numbers(rows, "committed_offset")
    accounts = accounts_of_now(
        log, committed, moments, known, read_committed=read_committed, now_ms=now_ms
    )
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


def lag_logs(paths: Sequence[str]) -> list[PartitionLog | None]:
    """Return for each partition directory its log as it is now. Log those that do not exist any
    more, and return None for them."""
    logs = logs_of_now(paths)
    for path, log in zip(paths, logs, strict=True):
        if log is None:
            _logger.warning(_DELETED, path)
    return logs


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


def accounts_of_now(
    log: PartitionLog | None,
    committed_offsets: LongArray,
    at_ms: LongArray | None,
    known: KnownCommits | None = None,
    *,
    read_committed: bool,
    now_ms: int,
) -> LagAccounts | None:
    """Return what `lag_accounts` computes for a log, listing its segments again if one is deleted
    meanwhile. `known` are all commits for the partition, those asked about where it is None.

    Return None without a log, and if its directory was deleted with its topic. Raises
    FileNotFoundError where segments are deleted faster than they can be read.
    """
    if at_ms is not None and known is None:
        known = KnownCommits.of(at_ms, committed_offsets)
    if log is None:
        return None

    def account(now: PartitionLog) -> LagAccounts:
        reached = None
        if at_ms is not None and known is not None:
            reached = known.reached_by(now, at_ms)
        return lag_accounts(
            now, committed_offsets, at_ms, reached, read_committed=read_committed, now_ms=now_ms
        )

    accounts = read_relisted(log, account)
    if accounts is None:
        _logger.warning(_DELETED, log.path)
    return accounts


def _numbers(rows: pa.Table, name: str) -> LongArray:
    """Return the numbers of a column, 0 for null."""
    return np.concatenate([integers(chunk) for chunk in rows.column(name).fill_null(_ZERO).chunks])


def _is_null(chunk: pa.Array) -> BoolArray:
    return ~present(chunk)


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
