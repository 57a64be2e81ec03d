"""What `kafkalog metadata` prints of the best copy of a cluster's metadata."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from kafkalog.command_line.answer_output import table_rows, write_words
from kafkalog.command_line.terminal import (
    has_chosen_columns,
    print_note,
    print_text,
    printed_columns,
    write_table,
)
from kafkalog.coordination.metadata.admin_commands import admin_commands
from kafkalog.coordination.metadata.cluster_rows import (
    OF_TOPICS,
    ROW_KINDS,
    ChangeRow,
    change_rows,
    cluster_rows,
)
from kafkalog.coordination.metadata.image import END, MetadataImage, Moment
from kafkalog.errors import OptionError, refuse_unknown
from kafkalog.exit_codes import ExitCode
from kafkalog.inspection.metadata.change_causes import cause_row, with_causes
from kafkalog.inspection.metadata.copies import MetadataCopy, best_copy, metadata_copies
from kafkalog.inspection.metadata.record_usage import COLUMNS, record_usage
from kafkalog.inspection.metadata.replay import MetadataReplay, image_at
from kafkalog.words import counted, size_text, time_text

_USAGE_TIMES = ("hour_ms", "first_timestamp_ms", "last_timestamp_ms", "busiest_hour_ms")
_USAGE_TEXTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(_USAGE_TIMES, time_text),
    "bytes": size_text,
    "share": lambda share: f"{share:.1%}",
}
_CHANGE_COLUMNS = (
    *("offset", "timestamp_ms", "record_name", *ChangeRow._fields),
    *("cause", "cause_offset"),
)
_TEXT_CHANGE_COLUMNS = ("offset", "timestamp_ms", "record_name", "kind", "name", "cause", "change")
_CAUSE = "cause"
# What a line of text has no room for: the other formats have it.
_WIDE = frozenset(
    (
        *("directories", "log_dirs", "cordoned_log_dirs", "features", "incarnation_id"),
        *("partition_epoch", "leader_recovery_state"),
    )
)
_KEYS = frozenset(("salt", "stored_key", "server_key"))
_TIMES = ("timestamp_ms", "issued_ms", "expires_ms", "last_expiry_ms")
_MOST_REMARKS = 10
# How the metadata says that a partition has no leader.
_NO_LEADER = -1
_FEATURE = "feature"
# Configs of all brokers have no name.
_DEFAULT = "<default>"


@dataclass(frozen=True)
class Request:
    """The request: rows of a kind, None for the usual; of topics, all if none are given."""

    paths: tuple[str, ...]
    kind: str | None
    topics: tuple[str, ...]
    show_secrets: bool
    table_format: str

    def write_rows(self, until: Moment) -> ExitCode:
        """Print the rows of a kind. Raises OptionError for a topic that there is not."""
        kind = kind_of_rows(self.kind, self.topics)
        replay = self.image(until)
        rows = cluster_rows(kind, replay.image, show_secrets=self.show_secrets)
        meant = of_topics(kind, rows, self.topics)
        write_rows(kind, meant, self.table_format, show_secrets=self.show_secrets)
        return self.ended(replay)

    def write_features(self, replay: MetadataReplay) -> None:
        """Print the features of a moment."""
        write_rows(
            _FEATURE,
            list(cluster_rows(_FEATURE, replay.image, show_secrets=False)),
            self.table_format,
            show_secrets=False,
        )

    def write_commands(self, until: Moment) -> ExitCode:
        """Print command lines. Raises OptionError for a topic that there is not."""
        replay = self.image(until)
        print_text(f"# {self._summary(replay)}")
        for line in admin_commands(replay.image, self.topics, show_secrets=self.show_secrets):
            print_text(line)
        return _end(replay)

    def write_changes(self, first: Moment, last: Moment) -> ExitCode:
        """Print the changes between two moments."""
        replay = MetadataReplay(self._copy.log, first, last)
        rows = [
            {
                "offset": each.offset,
                "timestamp_ms": each.timestamp_ms,
                "record_name": each.record_name,
                **cause_row(cause),
            }
            | row._asdict()
            for each, cause in with_causes(replay.changes(after=first))
            if self.kind in (None, each.change.table)
            and (not self.topics or each.change.topic in self.topics)
            for row in change_rows(each.change, show_secrets=self.show_secrets)
        ]
        if replay.is_cut:
            print_note(f"{self._copy.path}: {_cut_words(replay)}")
        write_changes(_CHANGE_COLUMNS, _TEXT_CHANGE_COLUMNS, rows, self.table_format)
        if not rows:
            print_note(unchanged_words(first, replay.last_ms))
        return self.ended(replay)

    @cached_property
    def _copies(self) -> list[MetadataCopy]:
        return metadata_copies(self.paths)

    @cached_property
    def _copy(self) -> MetadataCopy:
        return best_copy(self._copies)

    def image(self, until: Moment) -> MetadataReplay:
        """Return the replay up to a moment. Raises OptionError for a topic that there is not."""
        replay = image_at(self._copy.log, until)
        refuse_unknown_topics(self.topics, replay.image)
        return replay

    def ended(self, replay: MetadataReplay) -> ExitCode:
        """Say of what moment the answer is, and what could not be read."""
        put = print_text if self.table_format == "text" else print_note
        put(self._summary(replay))
        return _end(replay)

    def _summary(self, replay: MetadataReplay) -> str:
        others = f", the best of {len(self._copies)} copies" if len(self._copies) > 1 else ""
        time = f", {time_text(replay.last_ms)}" if replay.last_ms >= 0 else ""
        return (
            f"{self._copy.path}: as of offset {replay.next_offset}, leader epoch "
            f"{replay.last_epoch}{time}{others}: {image_words(replay.image)}"
        )


def kind_of_rows(kind: str | None, topics: Collection[str]) -> str:
    """Return the kind of rows. Raises OptionError for topics with a kind that is not about them."""
    if topics and kind not in (None, *OF_TOPICS):
        raise OptionError(
            "--topic", next(iter(topics)), f"rows of topics: --by {', '.join(OF_TOPICS)}"
        )
    return kind or "topic"


def refuse_unknown_topics(topics: Collection[str], image: MetadataImage) -> None:
    """Raise OptionError for a topic that an image does not have."""
    names = [row["topic"] for row in image.tables["topic"].values()]
    refuse_unknown("--topic", topics, names, "topics at that moment")


def of_topics(
    kind: str, rows: Iterable[dict[str, Any]], topics: Collection[str]
) -> list[dict[str, Any]]:
    """Return the rows of a kind that are about the topics, all if none are given."""
    if not topics:
        return list(rows)
    if kind == "config":
        rows = (row for row in rows if row["resource_type"] == "topic")
    name = "resource_name" if kind == "config" else "topic"
    return [row for row in rows if row[name] in topics]


def cluster_columns(kind: str | None, table_format: str, *, is_diff: bool) -> tuple[str, ...]:
    """Return the columns to print of a kind of rows, or of changes. Raises OptionError for a column
    of --columns that these do not have."""
    if not is_diff:
        return printed_columns(ROW_KINDS[kind or "topic"].columns)
    return printed_columns(_TEXT_CHANGE_COLUMNS if table_format == "text" else _CHANGE_COLUMNS)


def write_rows(
    kind: str,
    rows: list[dict[str, Any]],
    table_format: str,
    *,
    show_secrets: bool,
    not_known: Collection[str] = (),
) -> None:
    """Print the rows of a kind; as text without what a line has no room for, and without columns
    that are `not_known`."""
    left_out = {*_WIDE, *not_known, *(() if show_secrets else _KEYS)}
    every = ROW_KINDS[kind].columns
    columns = printed_columns(every, table_format, [each for each in every if each not in left_out])
    _write(columns, rows, table_format, is_chosen=has_chosen_columns())


def _write(
    columns: Sequence[str],
    rows: list[dict[str, Any]],
    table_format: str,
    *,
    is_chosen: bool = False,
) -> None:
    is_text = table_format == "text"
    if is_text and not is_chosen:
        columns = [name for name in columns if any(row[name] not in ([], {}) for row in rows)]
    if rows or not is_text:
        texts: dict[str, Callable[[Any], str]] = dict.fromkeys(_TIMES, time_text)
        texts["resource_name"] = lambda name: name or _DEFAULT
        for name in columns:
            if any(isinstance(row[name], list | dict) for row in rows):
                texts[name] = _text
        write_table(columns, table_rows(rows, columns, table_format), table_format, texts=texts)


def write_changes(
    columns: Sequence[str],
    text_columns: Sequence[str],
    rows: list[dict[str, Any]],
    table_format: str,
) -> None:
    """Print changes: as text a row for each, with all columns that it changed in one text, and
    causes where there are any."""
    if table_format == "text":
        if not has_chosen_columns() and all(row[_CAUSE] is None for row in rows):
            text_columns = [name for name in text_columns if name != _CAUSE]
        _write(text_columns, _text_changes(rows, text_columns), table_format)
    else:
        _write(columns, rows, table_format)


def image_words(image: MetadataImage) -> str:
    """Return how much an image has, in a few words."""
    tables = ("topic", "partition", "broker")
    return ", ".join(counted(len(image.tables[table]), table) for table in tables)


def unchanged_words(first: Moment, last_ms: int, newest_is: str = "record") -> str:
    """Return that nothing changed, and where the end of a copy is that is older than the period;
    `newest_is` says what is of `last_ms`."""
    words = "nothing changed in this period"
    if last_ms < 0 or first.end_offset != END.end_offset or first.time_ms <= last_ms:
        return words
    hour = time_text(last_ms - 3_600_000)
    newest = time_text(last_ms)
    return f"{words}: the newest {newest_is} is of {newest}; the hour before it: --diff {hour} end"


def _cut_words(replay: MetadataReplay) -> str:
    """Explain that changes before some offset are not known."""
    ends = [each.end_offset for each in replay.log.snapshots]
    start = replay.log.start_offset
    first = next((end for end in ends if end >= start), start)
    return f"the log begins at offset {start}: what changed before offset {first} is not known"


def _end(replay: MetadataReplay) -> ExitCode:
    """Name what could not be read, and return the exit code."""
    remarks = replay.image.remarks
    for remark in remarks[:_MOST_REMARKS]:
        name = remark.record_name or "a record"
        print_note(f"offset {remark.offset}: {name} has no effect here: {remark.detail}")
    if len(remarks) > _MOST_REMARKS:
        print_note(f"and {counted(len(remarks) - _MOST_REMARKS, 'record')} more without effect")
    for unusable in replay.unusable:
        print_note(f"{unusable}: this snapshot is not used")
    for damage in replay.damages:
        print_note(f"{damage}: records from there on are not read")
    is_whole = not (replay.damages or replay.unusable or remarks)
    return ExitCode.DONE if is_whole else ExitCode.UNREADABLE_INPUT


def _text_changes(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each change, with the columns that it changed in one text; those that a line
    has no room for only where there is no other."""
    found = []
    for key, some in groupby(rows, lambda row: [row[name] for name in columns[:-1]]):
        changed = [*some]
        shown = [row for row in changed if row["column"] not in _WIDE] or changed
        words = ", ".join(map(_words, shown))
        found.append({**dict(zip(columns, key, strict=False)), "change": words})
    return found


def _words(row: Mapping[str, Any]) -> str:
    """Return what changed in a few words."""
    if row["column"] is None:
        values = row["old"] if row["new"] is None else row["new"]
        held = {name: value for name, value in values.items() if name not in _WIDE}
        return f"{row['change']}: {_text(held)}"
    old, new = (
        "none" if row["column"] == "leader" and value == _NO_LEADER else _cell(value)
        for value in (row["old"], row["new"])
    )
    return f"{row['column']} {old} → {new}"


def _cell(value: Any) -> str:
    return "-" if value is None else _text(value)


def _text(value: Any) -> str:
    """Return a list or a dictionary in a cell."""
    if isinstance(value, dict):
        found = (
            (name, _text(each))
            for name, each in value.items()
            # Broker 0 is one.
            if not (each is None or each is False or each == [])
        )
        return " ".join(f"{name}={text}" for name, text in found) or "-"
    return ",".join(map(str, value)) or "-" if isinstance(value, list) else str(value)


def write_usage(paths: Sequence[str], by: str, until: Moment, table_format: str) -> ExitCode:
    """Print the records of the best copy by type and broker, or in each hour. Raises LogDirError
    for paths without a copy."""
    columns = printed_columns(COLUMNS[by])
    usage = record_usage(best_copy(metadata_copies(paths)).log, until)
    rows = table_rows(usage.rows(by), columns, table_format)
    write_table(columns, rows, table_format, texts=_USAGE_TEXTS)
    write_words(usage.words(), table_format)
    return ExitCode.DONE if usage.damage is None else ExitCode.UNREADABLE_INPUT
