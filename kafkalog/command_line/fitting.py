"""Which columns of a table a terminal has room for, and how their texts become shorter.

The columns that carry a command's answer are the last to go, whatever their place in the table.
Their texts are not cut: they go on in the next line. Rule: docs/command-line.md F1426.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

GAP = "  "
# Texts keep at least so many characters, those of an answer more as long as others can go, and the
# ends of paths up to so many.
_NARROWEST, _NARROWEST_ANSWER, _NARROWEST_PATH = 16, 32, 40
# The columns that a row is about, then those that answer, the most important first. All other
# columns go before these, the last ones of the table first.
_SUBJECTS = ("topic", "partition", "group", "node_id", "broker_id", "transactional_id")
_ANSWERS = (
    *("reason", "outcome", "finding", "kind", "severity", "broker_starts", "can_lead"),
    *("work", "visibility", "resumes_at", "records_skipped", "records_again"),
    *("stream_time_ms", "committed_offset", "at_ms", "status", "record_size"),
    *("key", "value"),
    *("lost_records", "lag", "to_read", "offset", "behind", "is_elected", "diverges_at", "what"),
    *("start_error", "waiting_offsets", "value_size", "next_offset", "records_behind"),
    *("bytes", "last_producer_id", "peak_bytes_per_second"),
    *("distinct_keys", "heaviest_key_share", "repeated_records", "bytes_freed"),
    *("bytes_within_week", "share"),
    *("assumed_policy", "offsets", "start_offset_after", "cause"),
    *("waiting_groups", "producer_id", "records_per_batch"),
    *("detail", "change", "name", "stuck_since_ms", "behind_since_ms"),
    *("offsets_held_back", "last_stable_offset", "holder_transactional_id"),
    *("total_size", "size", "saved", "salvageable_records", "padded_time_indexes"),
    *("missing_offsets", "consumers_stop_at"),
    *("under_replicated_partitions", "leaderless_partitions", "leader", "isr", "state"),
    *("timestamp_ms", "copies", "position"),
    *("keep_stopped", "commit_status", "end_offset"),
    *("jump", "deleted_between", "records_between"),
    *("records", "last_timestamp_ms"),
)
_RANKS = {name: rank for rank, name in enumerate((*_SUBJECTS, *_ANSWERS))}
# Cells that say nothing that a line about the whole column does not say.
_BLANKS = frozenset(("", "-", "0", "0 B", "0 ms"))
# In a table that is printed whole a text that is so much longer than nine in ten of its column
# stands out of it: the lines of the others are not padded for it.
_MOST_PADDED = 40
# Columns that have other ranks beside one. Of a change, when it was counts for more than where it
# is written, and what kind of thing changed is in its name. A record that was found has an offset.
# Who wrote last needs the time, and where consumers continue the leader.
_RANKS_BESIDE = {
    "change": {**_RANKS, "timestamp_ms": -1, "offset": len(_RANKS) - 1, "kind": len(_RANKS)},
    "visibility": {**_RANKS, "offset": _RANKS["partition"]},
    "resumes_at": {**_RANKS, "leader": _RANKS["stream_time_ms"]},
    "last_producer_id": {
        **_RANKS,
        "last_timestamp_ms": _RANKS["last_producer_id"],
        "transactional_id": _RANKS["last_producer_id"] + 1,
    },
}
# What is read from records can be long, and is cut.
_FOLDED = frozenset(_RANKS) - {"key", "value"}
_PATHS = frozenset(("file", "path", "directory", "source", "cut_file"))
# The name of a file by its offset: its digits without the zeros before them say as much.
_BY_OFFSET = re.compile(r"0{3,}(?=[0-9])")


class Column(NamedTuple):
    """A column's name in programs, and its header and its cells as text."""

    name: str
    cells: Sequence[str]
    is_number: bool

    @property
    def width(self) -> int:
        """The width with which nothing is shortened."""
        return max(map(len, self.cells))

    @property
    def usual_width(self) -> int:
        """The width of the column where the table is printed whole: that of its widest cell, but
        not of a few texts that are much wider than the others."""
        if self.is_number:
            return self.width
        lengths = sorted(map(len, self.cells))
        usual = max(lengths[(len(lengths) * 9 - 1) // 10], len(self.cells[0]))
        return usual if self.width > max(_MOST_PADDED, 2 * usual) else self.width

    @property
    def is_blank(self) -> bool:
        """Whether no row has a value other than 0 in it, of a column that rows are not about."""
        return self.name not in _SUBJECTS and _BLANKS.issuperset(self.cells[1:])

    def least(self, narrowest: int) -> int:
        """Return the width below which the column is left out; `narrowest` is that of texts, times
        apart, which are whole."""
        if self.is_number or self.name.endswith("_ms"):
            return self.width
        readable = 0
        if self.name in _PATHS:
            ends = (len(_end_of_path(cell)) for cell in self.cells)
            readable = max((end for end in ends if end <= _NARROWEST_PATH), default=0)
        return min(self.width, max(narrowest, len(self.cells[0]), readable))


def fitted(columns: Sequence[Column], terminal: int) -> dict[int, int]:
    """Return the places of the columns that a line of `terminal` characters has room for, each with
    its width: wide columns become narrower, and then the least important ones are left out, those
    that are empty or 0 in every row before all others, but never the first one; of changes, never
    their time."""
    kept = list(range(len(columns)))
    names = {column.name for column in columns}
    known = next((ranks for name, ranks in _RANKS_BESIDE.items() if name in names), _RANKS)
    ranks = [known.get(column.name, len(_RANKS)) for column in columns]
    first = ranks.index(-1) if -1 in ranks else 0
    ranks = [
        rank + len(_RANKS) + 1 if column.is_blank else rank
        for rank, column in zip(ranks, columns, strict=True)
    ]
    for is_last_resort in (False, True):
        least = [
            column.least(
                _NARROWEST if is_last_resort or column.name not in _ANSWERS else _NARROWEST_ANSWER
            )
            for column in columns
        ]
        while len(kept) > 1 and _line_width([least[place] for place in kept]) > terminal:
            others = (place for place in kept if place != first)
            going = max(others, key=lambda place: (ranks[place], place))
            if ranks[going] < len(_RANKS) and not is_last_resort:
                break
            kept.remove(going)
        else:
            break
    pairs = [(columns[place].width, least[place]) for place in kept]
    for most in range(max(width for width, _ in pairs), -1, -1):
        widths = [min(width, max(most, narrowest)) for width, narrowest in pairs]
        if _line_width(widths) <= terminal:
            break
    if len(kept) == 1:
        widths = [min(widths[0], max(terminal, 1))] if not columns[kept[0]].is_number else widths
    return dict(zip(kept, widths, strict=True))


def lines_of_cell(name: str, text: str, width: int) -> list[str]:
    """Return a cell in lines of at most `width` characters. What a row is about, and what answers,
    goes on in the next line; a path keeps its end, the directory and the name of the file; any
    other text loses its middle."""
    if len(text) <= width:
        return [text]
    if name in _FOLDED:
        return wrap(text, width, break_on_hyphens=False) or [""]
    return [_shortened(name, text, width)]


def _shortened(name: str, text: str, width: int) -> str:
    if name in _PATHS and "/" in text:
        text = _end_of_path(text, width)
        if len(text) <= width:
            return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def _end_of_path(text: str, width: int = 0) -> str:
    """Return the last two names of a path; where that is too wide, without zeros before offsets."""
    parts = text.rsplit("/", 2)
    if len(parts) <= 2:
        return text
    end = f"…/{parts[1]}/{parts[2]}"
    return end if len(end) <= width else _BY_OFFSET.sub("…", end)


def _line_width(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)
