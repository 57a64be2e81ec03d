"""`kafkalog txns`: transactions and last stable offsets, as kafka-transactions shows them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kafkalog.command_line.findings_table import exit_code
from kafkalog.command_line.inputs import bytes_in, logs_of_topics
from kafkalog.command_line.parallel import processes_for, processes_option
from kafkalog.command_line.terminal import (
    print_note,
    print_text,
    printed_columns,
    table_format_option,
    write_table,
)
from kafkalog.errors import LogDirError, OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.click_options import PATHS_MEANING
from kafkalog.words import duration_text, name_suggestions, time_text

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
_OPEN_TRANSACTIONS = (*_TRANSACTIONS, "waiting_groups")
_Row = dict[str, Any]
_STILL_OPEN = ("open", "hanging")
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
{PATHS_MEANING}
Consumers with read_committed wait at the last stable offset, the first offset of an open
transaction. A transaction is hanging if no coordinator will end it, which the command knows if
the log directories contain __transaction_state. Findings are hanging transactions.

STARTED is the start of a transaction by its coordinator's clock, FIRST-TIMESTAMP the time of its
first record by the producer's clock. DURATION counts from STARTED, or else from FIRST-TIMESTAMP.
WAITING-GROUPS are the groups that have a commit in the transaction, or have read up to the last
stable offset that it holds.

\b
REASON explains why an open transaction is hanging or not:
  known                not hanging: the coordinator has it
  recent               not hanging: written to within --max-transaction-timeout
  unknown              not called hanging: __transaction_state is missing here, or incomplete
  not_in_transaction   hanging: the coordinator's transaction lacks this partition
  no_transactional_id  hanging: the coordinator does not know the producer

\b
Examples:
  kafkalog txns /var/lib/kafka/data
  kafkalog txns /var/lib/kafka/data --stable-offsets --topic payments
  kafkalog txns /var/lib/kafka/data --find-hanging --max-transaction-timeout 60
  kafkalog txns /var/lib/kafka/data --describe --transactional-id billing-1
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option()
@shared.partition_option()
@click.option(
    "--open",
    "table",
    flag_value=_OPEN,
    default=True,
    help="List open and hanging transactions; the default.",
)
@click.option("--all", "table", flag_value=_ALL, help="List all transactions, by partition.")
@click.option(
    "--stable-offsets",
    "table",
    flag_value=_STABLE,
    help="List last stable offsets, and the transactions that block them.",
)
@click.option("--find-hanging", "table", flag_value=_HANGING, help="List hanging transactions.")
@click.option("--list", "table", flag_value=_LIST, help="List transactional ids and their states.")
@click.option(
    "--describe",
    "table",
    flag_value=_DESCRIBE,
    help="List transactional ids with the partitions of their transactions.",
)
@click.option(
    "--transactional-id",
    "ids",
    metavar="ID",
    multiple=True,
    help="Only this transactional id; repeatable.",
)
@shared.max_transaction_timeout_option
@shared.as_of_option("Show open transactions as of this time instead of now")
@shared.fail_on_findings_option(default=True)
@table_format_option
@processes_option
def txns(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    table: str,
    ids: Sequence[str],
    max_transaction_timeout: int,
    as_of: int | None,
    fail_on_findings: bool,
    table_format: str,
    processes: int | None,
) -> ExitCode:
    """List transactions: open, hanging, and what they block."""
    from kafkalog.command_line.groups.waiting_groups import waiting_groups
    from kafkalog.command_line.transaction_rows import transaction_rows
    from kafkalog.storage.names import TRANSACTION_STATE

    names = printed_columns(_TABLES[table][0])
    found = logs_of_topics(paths)
    is_about_ids = table in (_LIST, _DESCRIBE)
    if is_about_ids and not any(log.topic == TRANSACTION_STATE for log in found):
        raise LogDirError(
            f"{', '.join(paths)}: there is no partition of {TRANSACTION_STATE}, which has the "
            "transactional ids: give the log directories of all brokers"
        )
    requested = (
        found if not topics and not partitions else logs_of_topics(paths, topics, partitions)
    )
    now_ms, processes = time.time_ns() // 1_000_000, processes_for(bytes_in(found), processes)
    rows = transaction_rows(
        paths,
        [] if is_about_ids else requested,
        found,
        at_ms=now_ms if as_of is None else as_of,
        longest_ms=max_transaction_timeout * 60_000,
        processes=processes,
    )
    if table == _OPEN:
        still_open = [row for row in rows.transactions if row["outcome"] in _STILL_OPEN]
        waiting = waiting_groups(
            paths, found, still_open, as_of=as_of, now_ms=now_ms, processes=processes
        )
        for row in still_open:
            place = row["topic"], row["partition"], row["producer_id"]
            row["waiting_groups"] = ",".join(waiting.get(place, ())) or None
    _refuse_unknown(rows, ids)
    table_rows = _TABLES[table][1](rows)
    values = [[row[name] for name in names] for row in table_rows if not ids or _id(row) in ids]
    is_text = table_format == "text"
    if values or not is_text:
        write_table(names, values, table_format, texts=_TEXTS)
    if not is_about_ids:
        (print_text if is_text else print_note)(rows.words())
    is_hanging = any(row["outcome"] == "hanging" for row in rows.transactions)
    return exit_code(has_findings=is_hanging, fails=fail_on_findings)


def _id(row: Mapping[str, Any]) -> object:
    return row.get("transactional_id", row.get("holder_transactional_id"))


def _refuse_unknown(rows: TransactionRows, ids: Sequence[str]) -> None:
    known = {_id(row) for row in (*rows.transactions, *rows.states)}
    unknown = sorted(set(ids) - known)
    if unknown:
        shown = name_suggestions(unknown, [str(each) for each in known - {None}])
        raise OptionError(
            "--transactional-id",
            ",".join(unknown),
            f"transactional ids of the log directories: {shown}",
        )


def _open(rows: TransactionRows) -> Iterable[_Row]:
    found = [row for row in rows.transactions if row["outcome"] in _STILL_OPEN]
    return sorted(found, key=_began_ms)


def _began_ms(row: Mapping[str, Any]) -> int:
    return int(row["started_ms"] or row["first_timestamp_ms"] or 0)


def _hanging(rows: TransactionRows) -> Iterable[_Row]:
    return [row for row in rows.transactions if row["outcome"] == "hanging"]


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


# The columns and the rows of each table.
_TABLES: dict[str, tuple[tuple[str, ...], Callable[[TransactionRows], Iterable[_Row]]]] = {
    _OPEN: (_OPEN_TRANSACTIONS, _open),
    _ALL: (_TRANSACTIONS, lambda rows: rows.transactions),
    _STABLE: (_STABLE_OFFSETS, lambda rows: rows.stable_offsets),
    _HANGING: (_FOUND_HANGING, _hanging),
    _LIST: (_LISTED, _listed),
    _DESCRIBE: (_DESCRIBED, _listed),
}
