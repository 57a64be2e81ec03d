"""What `kafkalog groups --history` shows: how the commits of groups moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_columns,
    save_tables,
    write_answer,
    write_words,
)
from kafkalog.command_line.inputs import logs_of_topics, views_with_progress
from kafkalog.coordination.groups.lag_question import LagQuestion
from kafkalog.questions.positions.commit_history import COMMIT, END, TABLE, commit_history
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.words import duration_text, time_text

_COMMITS = "commits"
# A narrow terminal shows the first ones.
_TEXT_COLUMNS = (
    *("topic", "partition", "at_ms", "committed_offset", "finding", "event", "jump"),
    *("records_between", "deleted_between", "elapsed_ms", "members"),
)
_SUMS = ("jump", "records_between", "deleted_between", "hidden_between", "elapsed_ms")
_TEXTS: dict[str, Callable[[Any], str]] = {
    "at_ms": time_text,
    "elapsed_ms": lambda length_ms: "-" if length_ms is None else duration_text(length_ms),
}
_MOST_ROWS = 1_000_000


class HistoryInput(NamedTuple):
    """The options of the command for this table."""

    paths: Sequence[str]
    question: LagQuestion
    processes: int | None


def write_history(given: HistoryInput, output: AnswerOutput, *, verbose: bool) -> None:
    """Write a row per commit; as text commits that read on are one row, but with `verbose`. Raises
    OptionError and LogDirError as the question does."""
    from kafkalog.questions.groups.group_parts import refuse_without_commits

    table_format = output.table_format
    is_text = table_format == "text"
    shown = (*(["group_id"] if len(given.question.chosen.groups) > 1 else []), *_TEXT_COLUMNS)
    columns = answer_columns(TABLE, shown, table_format)
    logs = logs_of_topics(given.paths)
    refuse_without_commits(given.paths, logs)
    place = output.tables_of_logs([TABLE], given.paths, logs)
    selected = [log for log in logs if log.topic == CONSUMER_OFFSETS]
    with views_with_progress(
        given.paths, logs, given.processes, reads=2, selected=selected
    ) as views:
        history = commit_history(views, given.question, "--history")
    rows: Iterable[Mapping[str, Any]] = history.rows
    if is_text and not verbose:
        rows = [*_joined(history.rows)]
        columns = _with_commits(columns)
    if is_text:
        # A narrow terminal has no room for the event: such a row is not about a commit.
        rows = [{**row, "finding": row["finding"] or _end(row)} for row in rows]
    write_answer(columns, rows, table_format, show=_MOST_ROWS, texts=_TEXTS)
    write_words(history.words(), table_format)
    save_tables(place, {TABLE: history.rows})


def _with_commits(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with the number of commits, before that of members or at the end."""
    place = columns.index("members") if "members" in columns else len(columns)
    return (*columns[:place], _COMMITS, *columns[place:])


def _end(row: Mapping[str, Any]) -> str | None:
    return END if row["event"] == END else None


def _joined(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows, those of commits one after another that only read on as one: the last, with
    the sums of what they passed."""

    def kind(row: Mapping[str, Any]) -> tuple[object, ...]:
        reads_on = row["event"] == COMMIT and row["finding"] is None and row["jump"] is not None
        own = None if reads_on else row["record_offset"]
        return row["group_id"], row["topic"], row["partition"], reads_on, row["event"], own

    for key, found in groupby(rows, kind):
        run = list(found)
        row = {**run[-1], _COMMITS: len(run) if run[0]["event"] == COMMIT else None}
        if key[3]:
            row |= {name: _sum(run, name) for name in _SUMS}
        yield row


def _sum(rows: Sequence[Mapping[str, Any]], name: str) -> int | None:
    known = [row[name] for row in rows if row[name] is not None]
    return sum(known) if known else None
