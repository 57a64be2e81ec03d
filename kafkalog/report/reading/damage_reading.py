"""Where in a partition damage lies, from view `byte_ranges`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import fixed_width
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.report.contents import DamageSection, Row, as_rows
from kafkalog.storage.log_dir.metadata_snapshots import is_snapshot_file
from kafkalog.views.engine import Batches, Views, rows_of_view

_LOG = ("cluster_id", "broker_id", "input_path", "topic", "partition")
_COLUMNS = (
    *_LOG,
    *("file", "segment_base_offset", "file_size", "position", "length"),
    *("verdict", "severity", "kind", "detail"),
)
_RANKS = {"error": 0, "warning": 1}
_SUMS = ("bytes", "ranges", "errors", "faulty_bytes", "trailing_bytes")


def read_damage(views: Views, *, cells: int, partitions: int, ranges: int) -> DamageSection:
    """Return a row per partition and broker, the worst first: bytes; segments; faulty_bytes and
    trailing_bytes; ranges, those with findings, and errors, the worst of them; and marks, the
    (cell, kind, severity, ranges) that there is something in, where the partition's segments, one
    after the other, are divided into `cells` equal parts. A range marks each cell that it touches:
    none is too small to be seen. F600. Kinds are those of docs/format.md, and `trailing`.

    The section has the first `partitions` of them, and the first `ranges` of each of these."""
    schema = arrow_schema("byte_ranges", _COLUMNS)
    by_log: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in as_rows(rows_of_view(views, "byte_ranges", _COLUMNS, _that_matter, schema)):
        by_log[tuple(row[name] for name in _LOG)].append(row)
    logs = [_damage_map(rows, cells) for rows in by_log.values()]
    logs.sort(
        key=lambda row: (
            *(-row.errors, -row.ranges, -row.bytes),
            *(row.topic is not None, row.topic or "", row.partition or 0),
        )
    )
    shown = logs[:partitions]
    found = [
        row
        for log in shown
        for row in _first_ranges(by_log[tuple(log[name] for name in _LOG)], ranges)
    ]
    totals = Row(
        partitions=len(logs),
        damaged_partitions=sum(row.errors > 0 for row in logs),
        **{name: sum(row[name] for row in logs) for name in _SUMS},
    )
    return DamageSection(cells, shown, found, totals)


def _that_matter(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the ranges with findings, and at least one range of each file."""
    last: str | None = None
    for batch in batches:
        if not len(batch):
            continue
        files = batch.column("file").fill_null("")
        is_new = np.ones(len(batch), np.bool_)
        is_new[1:] = pc.not_equal(files.slice(1), files.slice(0, len(files) - 1)).to_numpy(
            zero_copy_only=False
        )
        is_new[0] = files[0].as_py() != last
        last = files[-1].as_py()
        is_sound = pc.and_(
            batch.column("kind").is_null(), pc.equal(batch.column("verdict"), "valid")
        )
        yield batch.filter(pc.or_(fixed_width(is_new, pa.bool_()), pc.invert(is_sound)))


def _has_findings(row: Row) -> bool:
    return row.kind is not None or row.verdict != "valid"


def _shown_kind(row: Row) -> str:
    """Return the kind; a tail that a broker was writing or has allocated is not damage."""
    is_tail = row.verdict == "trailing" and row.severity != "error"
    kind: str = "trailing" if is_tail else row.kind or row.verdict
    return kind


def _damage_map(rows: Sequence[Row], cells: int) -> Row:
    sizes: dict[tuple[int, str], int] = {}
    for row in rows:
        file = _file(row)
        sizes[file] = max(sizes.get(file, 0), row.file_size or 0)
    in_order = sorted(sizes)
    ends = list(accumulate((sizes[file] for file in in_order), initial=0))
    starts, total = dict(zip(in_order, ends, strict=False)), ends[-1]
    marks: Counter[tuple[int, str, str]] = Counter()
    findings = [row for row in rows if _has_findings(row)]
    for row in findings:
        begin = starts[_file(row)] + (row.position or 0)
        end = begin + max((row.length or 0) - 1, 0)
        first, last = (min(each * cells // max(total, 1), cells - 1) for each in (begin, end))
        for cell in range(first, last + 1):
            marks[cell, _shown_kind(row), row.severity or "information"] += 1
    return Row(
        **{name: rows[0][name] for name in _LOG},
        bytes=total,
        segments=len({_file(row) for row in rows if _is_of_segment(row)}),
        faulty_bytes=_bytes_of(rows, "faulty"),
        trailing_bytes=_bytes_of(rows, "trailing"),
        ranges=len(findings),
        errors=sum(row.severity == "error" for row in rows),
        marks=[
            Row(cell=cell, kind=kind, severity=severity, ranges=marks[cell, kind, severity])
            for cell, kind, severity in sorted(marks)
        ],
    )


def _is_of_segment(row: Row) -> bool:
    return row.file_size is not None and not is_snapshot_file(row.file)


def _file(row: Row) -> tuple[int, str]:
    base = row.segment_base_offset
    return -1 if base is None else base, row.file or ""


def _bytes_of(rows: Sequence[Row], verdict: str) -> int:
    return sum(row.length or 0 for row in rows if row.verdict == verdict)


def _first_ranges(rows: Sequence[Row], count: int) -> list[Row]:
    """Return the first ranges of a partition that there is anything to say of, the worst first."""
    findings = sorted(
        filter(_has_findings, rows),
        key=lambda row: (_RANKS.get(row.severity, 2), _file(row)[0], row.position or 0),
    )
    return [
        Row(**(vars(row) | {"number": number, "kind": _shown_kind(row)}))
        for number, row in enumerate(findings[:count], start=1)
    ]
