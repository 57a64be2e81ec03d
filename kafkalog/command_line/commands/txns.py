"""`kafkalog txns`: transactions and last stable offsets, as kafka-transactions shows them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_output_options,
    exit_code,
    save_tables,
    write_words,
)
from kafkalog.command_line.inputs import logs_of_topics
from kafkalog.command_line.terminal import print_note, printed_columns, write_table
from kafkalog.errors import ConflictingOptionsError, LogDirError
from kafkalog.exit_codes import ExitCode
from kafkalog.storage.partition_log import bytes_in
from kafkalog.views.options import click_options as shared
from kafkalog.views.parallel import processes_for
from kafkalog.words import duration_text, time_text

if TYPE_CHECKING:
    from kafkalog.inspection.logs.missing_records import MissingRecords
    from kafkalog.questions.transactions import Transactions, TransactionSettings
    from kafkalog.views.engine import LocalViews

_OPEN, _ALL, _HANGING, _LIST, _DESCRIBE, _STABLE = (
    *("open", "all", "find-hanging", "list", "describe", "stable-offsets"),
)
_TRANSACTIONS = (
    *("topic", "partition", "outcome", "reason", "transactional_id", "producer_id"),
    *("producer_epoch", "first_offset", "records", "started_ms", "duration_ms"),
    *("first_timestamp_ms", "last_timestamp_ms", "is_stable_offset_holder"),
)
_OPEN_TRANSACTIONS = (*_TRANSACTIONS, "waiting_groups")
_Row = Mapping[str, Any]
_TEXTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("first_timestamp_ms", "last_timestamp_ms", "started_ms"), time_text),
    "holder_last_timestamp_ms": time_text,
    **dict.fromkeys(("duration_ms", "timeout_ms"), duration_text),
}
_LISTED: tuple[str, ...] = ("transactional_id", "coordinator_id", "producer_id", "state")
_DESCRIBED: tuple[str, ...] = (
    *_LISTED,
    "producer_epoch",
    "timeout_ms",
    "started_ms",
    "topic_partitions",
)
_FOUND_HANGING = (
    *("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch"),
    *("first_offset", "last_timestamp_ms", "duration_ms"),
)
_STABLE_OFFSETS = (
    *("topic", "partition", "broker_id", "last_stable_offset", "high_watermark", "end_offset"),
    *("offsets_held_back", "open_transactions", "holder_transactional_id", "holder_producer_id"),
    *("holder_first_offset", "holder_last_timestamp_ms"),
)

_TABLES = {
    _OPEN: _OPEN_TRANSACTIONS,
    _ALL: _TRANSACTIONS,
    _STABLE: _STABLE_OFFSETS,
    _HANGING: _FOUND_HANGING,
    _LIST: _LISTED,
    _DESCRIBE: _DESCRIBED,
}
_NO_ID = "no transactional id is known: __transaction_state has no record of one here"

_EPILOG = f"""\
{shared.PATHS_MEANING}
Consumers with read_committed wait at the last stable offset, the first offset of an open
transaction. A transaction is hanging if no coordinator will end it, which the command knows if
the log directories contain __transaction_state. Findings are hanging transactions.

STARTED is the start of a transaction by its coordinator's clock, FIRST-TIMESTAMP the time of its
first record by the producer's clock. DURATION counts from STARTED, or else from FIRST-TIMESTAMP.
WAITING-GROUPS are the groups that have a commit in the transaction, or have read up to the last
stable offset that it holds.

With --as-of, transactions that have ended since are open, and those that began since are left out.
Clocks of brokers say what had ended, and clocks of producers, which can be wrong, what had begun.
Partitions that have nothing left from then are named: what was open in them is not known.

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
@shared.as_of_option("Show what was open at this time, instead of now")
@shared.fail_on_findings_option(default=True)
@answer_output_options
@shared.processes_option
def txns(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    table: str,
    ids: Sequence[str],
    max_timeout_ms: int,
    as_of: int | None,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """List transactions: open, hanging, and what they block."""
    from kafkalog.inspection.metadata.current_topics import without_former
    from kafkalog.inspection.partitions.newest_times import old_copy_words
    from kafkalog.questions.transactions import (
        REPORT,
        STABLE_OFFSETS,
        TransactionSettings,
        transactional_ids,
        transactions,
    )
    from kafkalog.storage.names import TRANSACTION_STATE
    from kafkalog.views.engine import LocalViews

    columns, table_format = printed_columns(_TABLES[table]), output.table_format
    if output.output_dir and table in (_LIST, _DESCRIBE):
        raise ConflictingOptionsError("--output-dir", f"--{table}")
    found = logs_of_topics(paths)
    place = output.tables_of_logs([REPORT, STABLE_OFFSETS], paths, found)
    if table in (_LIST, _DESCRIBE) and not any(log.topic == TRANSACTION_STATE for log in found):
        raise LogDirError(
            f"{', '.join(paths)}: there is no partition of {TRANSACTION_STATE}, which has the "
            "transactional ids: give the log directories of all brokers"
        )
    now_ms, processes = time.time_ns() // 1_000_000, processes_for(bytes_in(found), processes)
    views = LocalViews(paths, found, processes)
    if table in (_LIST, _DESCRIBE):
        known, missing = transactional_ids(views, TransactionSettings(now_ms, as_of))
        states = known.states()
        _refuse_unknown(states, ids, missing)
        listed = [row for row in _listed(views, states) if not ids or _id(row) in ids]
        values = [[row[name] for name in columns] for row in listed]
        write_table(columns, values, table_format, texts=_TEXTS, without_rows=_NO_ID)
        return ExitCode.DONE
    requested = without_former(logs_of_topics(paths, topics, partitions, found), topics)
    has_ended_rows = table == _ALL or place is not None
    settings = TransactionSettings(now_ms, as_of, max_timeout_ms, requested, has_ended_rows)
    answer = transactions(views, settings)
    for note in answer.notes:
        print_note(note)
    has_ages = as_of is None and (answer.totals["open"] or answer.has_findings)
    times_ms = [state["record_timestamp_ms"] for state in answer.ids.states()]
    if has_ages and (age := old_copy_words(times_ms, TRANSACTION_STATE, now_ms)):
        print_note(age)
    _refuse_unknown(answer.ids.states(), ids, answer.missing)
    rows = [row for row in _rows(table, answer, views, settings) if not ids or _id(row) in ids]
    if rows or table_format != "text":
        values = [[row[name] for name in columns] for row in rows]
        write_table(columns, values, table_format, texts=_TEXTS)
    words = answer.words()
    if table == _HANGING and not rows:
        opened = answer.totals["open"]
        more = f"; without this option {opened:,} open are listed" if opened else ""
        words = [f"no transaction hangs, by what is here{more}"]
    write_words(words, table_format)
    save_tables(place, {REPORT: answer.report, STABLE_OFFSETS: answer.stable_offsets})
    return exit_code(has_findings=answer.has_findings, fails=fail_on_findings)


def _id(row: _Row) -> object:
    return row.get("transactional_id", row.get("holder_transactional_id"))


def _refuse_unknown(
    states: Iterable[_Row], ids: Sequence[str], missing: Sequence[MissingRecords]
) -> None:
    """Raise LogDirError for an unknown id where records are missing that may be about it, and else
    OptionError."""
    from kafkalog.inspection.logs.missing_records import refuse_unknown_of_records

    known = {state["transactional_id"] for state in states}
    unknown = {*ids} - known
    refuse_unknown_of_records(
        *("--transactional-id", "transactional id", unknown), lambda: known, missing
    )


def _rows(
    table: str, answer: Transactions, views: LocalViews, settings: TransactionSettings
) -> Iterable[_Row]:
    """Return the rows of a table about transactions."""
    if table == _ALL:
        return answer.report
    if table == _HANGING:
        return [row for row in answer.report if row["outcome"] == "hanging"]
    if table == _OPEN:
        return _with_waiting_groups(answer.open(), views, settings)
    by_producer = answer.ids.by_producer()
    rows = []
    for row in answer.stable_offsets:
        holder = by_producer.get((row["cluster_id"], row["holder_producer_id"]))
        rows.append({**row, "holder_transactional_id": holder and holder["transactional_id"]})
    return rows


def _with_waiting_groups(
    transactions: list[dict[str, Any]], views: LocalViews, settings: TransactionSettings
) -> list[dict[str, Any]]:
    from kafkalog.questions.why import waiting_groups

    waiting = waiting_groups(views, transactions, settings.as_of_ms, settings.now_ms)
    for row in transactions:
        place = row["topic"], row["partition"], row["producer_id"]
        row["waiting_groups"] = ",".join(waiting.get(place, ())) or None
    return transactions


def _listed(views: LocalViews, states: Iterable[_Row]) -> list[_Row]:
    from kafkalog.inspection.metadata.cluster_history import cluster_histories
    from kafkalog.storage.names import TRANSACTION_STATE

    coordinators = {
        (cluster_id, partition): broker_id
        for cluster_id, history in cluster_histories(views.logs).items()
        for partition, broker_id in history.leaders_of(TRANSACTION_STATE).items()
    }
    return [
        {
            **state,
            "coordinator_id": coordinators.get((state["cluster_id"], state["internal_partition"])),
            "topic_partitions": ",".join(
                f"{each['topic']}-{partition}"
                for each in state["partitions"] or ()
                for partition in each["partitions"]
            ),
        }
        for state in states
    ]
