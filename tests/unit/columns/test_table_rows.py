"""Sums of rows."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.table_rows import grouped

SCHEMA = pa.schema(
    [
        *(("topic", pa.string()), ("is_control", pa.bool_()), ("second", pa.int64())),
        *(("records", pa.int64()), ("first_ms", pa.int64()), ("last_ms", pa.int64())),
    ]
)
SUMS = {"records": "sum", "first_ms": "min", "last_ms": "max"}
ROWS = [
    ("orders", False, 1, 10, 5, 5),
    ("orders", False, 1, 20, None, 9),
    ("orders", True, 1, 1, -3, None),
    (None, False, None, 4, None, None),
    ("orders", False, None, 7, 2**62, -(2**62)),
    (None, False, None, 5, None, None),
]


def table(rows: Sequence[tuple[object, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def test_rows_that_agree_become_one_as_arrow_groups_them() -> None:
    found = grouped([table(ROWS[:2]), table(ROWS[2:]), table([])], SCHEMA, SUMS)
    keys = ["topic", "is_control", "second"]
    by_arrow = table(ROWS).group_by(keys).aggregate(list(SUMS.items()))
    expected = by_arrow.rename_columns([*keys, *SUMS]).cast(SCHEMA)
    order = [(name, "ascending") for name in SCHEMA.names]
    assert found.take(pc.sort_indices(found, order)).equals(
        expected.take(pc.sort_indices(expected, order))
    )


def test_no_rows_have_no_sums() -> None:
    assert grouped([], SCHEMA, SUMS).equals(SCHEMA.empty_table())
