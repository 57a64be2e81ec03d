"""Where in a partition damage lies: the rows of question `checks`, as a map."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from kafkalog.questions.checks import Checks, missing_words
from kafkalog.report.contents import DamageSection, Row, as_rows
from kafkalog.storage.log_dir.metadata_snapshots import is_snapshot_file

_LOG = ("cluster_id", "broker_id", "input_path", "topic", "partition")
_RANKS = {"error": 0, "warning": 1}
_SUMS = ("bytes", "ranges", "errors", "faulty_bytes", "trailing_bytes")
# What a page has room for: files other than segments, and replicas that differ.
LISTED_OTHERS = 20


def damage_section(found: Checks, *, cells: int, partitions: int, ranges: int) -> DamageSection:
    """Return a row per partition and broker, the worst first: bytes; segments; faulty_bytes and
    trailing_bytes; ranges, those with findings, and errors, the worst of them; and marks, the
    (cell, kind, severity, ranges) that there is something in, where the partition's segments, one
    after the other, are divided into `cells` equal parts. A range marks each cell that it touches:
    none is too small to be seen. F600. Kinds are those of docs/format.md, and `trailing`.

    The section has the first `partitions` of them, and the first `ranges` of each of these; and
    what `kafkalog check` finds beside them: replicas with other records, and entries that are named
    like files of Kafka and cannot be read. Files beside logs are not checked."""
    segments, faults = _by_log(found.report), _by_log(found.faults)
    logs = [_damage_map(rows, faults.get(log, ()), cells) for log, rows in segments.items()]
    logs.sort(
        key=lambda row: (
            *(-row.errors, -row.ranges, -row.bytes),
            *(row.topic is not None, row.topic or "", row.partition or 0),
        )
    )
    shown = logs[:partitions]
    first = [row for log in shown for row in _first_ranges(faults.get(_key(log), ()), ranges)]
    totals = Row(
        partitions=len(logs),
        damaged_partitions=sum(row.errors > 0 for row in logs),
        missing=missing_words(missing) if (missing := found.missing) else None,
        **{name: sum(row[name] for row in logs) for name in _SUMS},
    )
    others = [Row(**each._asdict()) for each in found.others[:LISTED_OTHERS]]
    return DamageSection(cells, shown, first, totals, others, len(found.others))


def _key(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in _LOG)


def _by_log(rows: Iterable[Mapping[str, Any]]) -> Mapping[tuple[object, ...], list[Row]]:
    found: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in as_rows(rows):
        found[_key(row)].append(row)
    return found


def _shown_kind(row: Row) -> str:
    """Return the kind; a tail that a broker was writing or has allocated is not damage."""
    is_tail = row.verdict == "trailing" and row.severity != "error"
    kind: str = "trailing" if is_tail else row.kind
    return kind


def _damage_map(segments: Sequence[Row], faults: Sequence[Row], cells: int) -> Row:
    sizes = {_file(row): row.bytes or 0 for row in segments}
    in_order = sorted(sizes)
    ends = list(accumulate((sizes[file] for file in in_order), initial=0))
    starts, total = dict(zip(in_order, ends, strict=False)), ends[-1]
    marks: Counter[tuple[int, str, str]] = Counter()
    for row in faults:
        begin = starts[_file(row)] + (row.position or 0)
        end = begin + max((row.length or 0) - 1, 0)
        first, last = (min(each * cells // max(total, 1), cells - 1) for each in (begin, end))
        for cell in range(first, last + 1):
            marks[cell, _shown_kind(row), row.severity] += 1
    return Row(
        **{name: segments[0][name] for name in _LOG},
        bytes=total,
        segments=sum(map(_is_of_segment, segments)),
        faulty_bytes=sum(row.faulty_bytes for row in segments),
        trailing_bytes=sum(row.trailing_bytes for row in segments),
        ranges=len(faults),
        errors=sum(row.faults for row in segments),
        marks=[
            Row(cell=cell, kind=kind, severity=severity, ranges=marks[cell, kind, severity])
            for cell, kind, severity in sorted(marks)
        ],
    )


def _is_of_segment(row: Row) -> bool:
    return row.bytes is not None and not is_snapshot_file(row.file)


def _file(row: Row) -> tuple[int, str]:
    base = row.segment_base_offset
    return -1 if base is None else base, row.file or ""


def _first_ranges(faults: Sequence[Row], count: int) -> list[Row]:
    """Return the first findings of a partition, the worst first."""
    in_order = sorted(
        faults, key=lambda row: (_RANKS.get(row.severity, 2), _file(row)[0], row.position or 0)
    )
    return [
        Row(**(vars(row) | {"number": number, "kind": _shown_kind(row)}))
        for number, row in enumerate(in_order[:count], start=1)
    ]
