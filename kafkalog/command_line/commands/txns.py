"""`kafkalog txns`: transactions, who holds readers back, and what kafka-transactions tells."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kafkalog.command_line.inputs import (
    LOG_DIRS_MEANING,
    MOMENT_NAMES,
    bytes_in,
    log_dirs_argument,
    logs_of_topics,
    partition_options,
    time_option,
)
from kafkalog.command_line.parallel import processes_for, processes_option
from kafkalog.command_line.terminal import say, table_format_option, tell, write_table
from kafkalog.errors import LogDirError, OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.words import duration_text, names_that_are_there, time_text

if TYPE_CHECKING:
    from kafkalog.command_line.transaction_rows import TransactionRows

_OPEN, _ALL, _HANGING, _LIST, _DESCRIBE, _STABLE = (
    *("open", "all", "find-hanging", "list", "describe", "stable-offsets"),
)
_TRANSACTIONS = (
    *("topic", "partition", "outcome", "reason", "transactional_id", "producer_id"),
    *("producer_epoch", "first_offset", "records", "started_ms", "duration_ms"),
    *("first_timestamp_ms", "last_timestamp_ms", "is_stable_offset_holder"),
)
_TEXTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("first_timestamp_ms", "last_timestamp_ms", "started_ms"), time_text),
    "holder_last_timestamp_ms": time_text,
    **dict.fromkeys(("duration_ms", "timeout_ms"), duration_text),
}
_LISTED = ("transactional_id", "coordinator_id", "producer_id", "state")
_DESCRIBED = (*_LISTED, "producer_epoch", "timeout_ms", "started_ms", "topic_partitions")
_FOUND_HANGING = (
    *("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch"),
    *("first_offset", "last_timestamp_ms", "duration_ms"),
)
_STABLE_OFFSETS = (
    *("topic", "partition", "broker_id", "last_stable_offset", "high_watermark", "end_offset"),
    *("offsets_held_back", "open_transactions", "holder_transactional_id", "holder_producer_id"),
    *("holder_first_offset", "holder_last_timestamp_ms"),
)

_EPILOG = f"""\
{LOG_DIRS_MEANING}
Readers of committed records wait at the last stable offset, the first of an open transaction. One
is hanging if no coordinator will end it; that is known where the log directories hold
__transaction_state. Exit code 1 says that there are hanging ones.

STARTED is when a transaction began by its coordinator's clock, FIRST-TIMESTAMP its first record's
time by the producer's. DURATION goes by the one that is known, STARTED before the other.

\b
REASON says why an open transaction is hanging or not:
  known                its coordinator has it: not hanging
  recent               it was written to within --max-transaction-timeout
  unknown              no __transaction_state here, or not all of it: not called hanging
  not_in_transaction   hanging: the coordinator does not have this partition in it
  no_transactional_id  hanging: the coordinator has no such producer

\b
Examples:
  kafkalog txns /var/lib/kafka/data
  kafkalog txns /var/lib/kafka/data --stable-offsets --topic payments
  kafkalog txns /var/lib/kafka/data --find-hanging --max-transaction-timeout 60
  kafkalog txns /var/lib/kafka/data --describe --transactional-id billing-1
"""


@click.command(epilog=_EPILOG)
@log_dirs_argument
@partition_options
@click.option("--open", "table", flag_value=_OPEN, default=True, help="What has not ended.")
@click.option("--all", "table", flag_value=_ALL, help="All transactions, by partition.")
@click.option("--stable-offsets", "table", flag_value=_STABLE, help="Who holds which partition.")
@click.option("--find-hanging", "table", flag_value=_HANGING, help="What nobody will end.")
@click.option("--list", "table", flag_value=_LIST, help="Transactional ids and their states.")
@click.option("--describe", "table", flag_value=_DESCRIBE, help="The same with their partitions.")
@click.option(
    "--transactional-id", "ids", metavar="ID", multiple=True, help="Only this id; repeatable."
)
@click.option(
    "--max-transaction-timeout",
    metavar="MINUTES",
    type=click.IntRange(min=0),
    default=15,
    show_default=True,
    help="The brokers' transaction.max.timeout.ms, in minutes: what was written to more lately "
    "is not called hanging.",
)
@time_option(MOMENT_NAMES, "at", "Judge as of a time, instead of now")
@table_format_option
@processes_option
def txns(
    log_dirs: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    table: str,
    ids: Sequence[str],
    max_transaction_timeout: int,
    at: int | None,
    table_format: str,
    processes: int | None,
) -> ExitCode:
    """Tell transactions that are open or hanging, and what they hold back."""
    from kafkalog.command_line.transaction_rows import transaction_rows
    from kafkalog.storage.names import TRANSACTION_STATE

    found = logs_of_topics(log_dirs)
    is_about_ids = table in (_LIST, _DESCRIBE)
    if is_about_ids and not any(log.topic == TRANSACTION_STATE for log in found):
        raise LogDirError(
            f"{', '.join(log_dirs)}: no partition of {TRANSACTION_STATE} there, which tells of "
            "transactional ids; give the log directories of all brokers"
        )
    asked = found if not topics and not partitions else logs_of_topics(log_dirs, topics, partitions)
    rows = transaction_rows(
        log_dirs,
        [] if is_about_ids else asked,
        found,
        at_ms=time.time_ns() // 1_000_000 if at is None else at,
        longest_ms=max_transaction_timeout * 60_000,
        processes=processes_for(bytes_in(found), processes),
    )
    _refuse_unknown(rows, ids)
    names, table_rows = _TABLES[table](rows)
    values = [[row[name] for name in names] for row in table_rows if not ids or _id(row) in ids]
    is_text = table_format == "text"
    if values or not is_text:
        write_table(names, values, table_format, texts=_TEXTS)
    if not is_about_ids:
        (say if is_text else tell)(rows.words())
    is_hanging = any(row["outcome"] == "hanging" for row in rows.transactions)
    return ExitCode.FINDINGS if is_hanging else ExitCode.DONE


def _id(row: Mapping[str, Any]) -> object:
    return row.get("transactional_id", row.get("holder_transactional_id"))


def _refuse_unknown(rows: TransactionRows, ids: Sequence[str]) -> None:
    known = {_id(row) for row in (*rows.transactions, *rows.states)}
    unknown = sorted(set(ids) - known)
    if unknown:
        shown = names_that_are_there(unknown, [str(each) for each in known - {None}])
        raise OptionError("--transactional-id", ",".join(unknown), f"ids that are there: {shown}")


_Table = tuple[tuple[str, ...], Iterable[dict[str, Any]]]


def _open(rows: TransactionRows) -> _Table:
    found = [row for row in rows.transactions if row["outcome"] in ("open", "hanging")]
    return _TRANSACTIONS, sorted(found, key=_began_ms)


def _began_ms(row: Mapping[str, Any]) -> int:
    return int(row["started_ms"] or row["first_timestamp_ms"] or 0)


def _hanging(rows: TransactionRows) -> _Table:
    return _FOUND_HANGING, [row for row in rows.transactions if row["outcome"] == "hanging"]


def _listed(rows: TransactionRows) -> list[dict[str, Any]]:
    return [
        {
            **state,
            "coordinator_id": rows.coordinators.get(state["internal_partition"]),
            "topic_partitions": ",".join(
                f"{each['topic']}-{partition}"
                for each in state["partitions"] or ()
                for partition in each["partitions"]
            ),
        }
        for state in rows.states
    ]


_TABLES: dict[str, Callable[[TransactionRows], _Table]] = {
    _OPEN: _open,
    _ALL: lambda rows: (_TRANSACTIONS, rows.transactions),
    _STABLE: lambda rows: (_STABLE_OFFSETS, rows.stable_offsets),
    _HANGING: _hanging,
    _LIST: lambda rows: (_LISTED, _listed(rows)),
    _DESCRIBE: lambda rows: (_DESCRIBED, _listed(rows)),
}
