"""The lag in time, by the one function that all faces have. Rule: docs/format.md F315."""

from typing import Any

import pyarrow as pa
import pytest

from kafkalog.inspection.lag.lag_columns import lag_times

NAMES = (
    *("readable_records", "in_tiered_storage", "damaged", "next_timestamp_ms"),
    *("newest_timestamp_ms", "consumed_timestamp_ms", "at_ms", "commit_timestamp_ms"),
)
READS = {"readable_records": 5, "in_tiered_storage": 0, "damaged": 0, "at_ms": 9000}
LEAST = -(2**63)


def time_lag(**values: int | None) -> Any:
    columns = {name: pa.array([values.get(name)], pa.int64()) for name in NAMES}
    (of_columns,) = lag_times(columns)["time_lag_ms"].to_pylist()
    (of_table,) = lag_times(pa.table(columns))["time_lag_ms"].to_pylist()
    assert of_columns == of_table
    return of_columns


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"next_timestamp_ms": 1000}, 8000),
        ({"next_timestamp_ms": 9500}, -500),
        ({"readable_records": 0}, 0),
        # The record has no timestamp.
        ({}, None),
        # Only what is in tiered storage, or may be hidden by damage, is left.
        ({"readable_records": 0, "in_tiered_storage": 3}, None),
        ({"readable_records": 0, "damaged": 3}, None),
        # 9000 - (-2**63 + 5) does not fit into 64 bits.
        ({"next_timestamp_ms": LEAST + 5}, None),
        ({"next_timestamp_ms": LEAST + 9001}, 2**63 - 1),
        # Whether anything is in tiered storage does not change the age of a record that is known.
        ({"next_timestamp_ms": 1000, "in_tiered_storage": None}, 8000),
        ({"readable_records": 0, "in_tiered_storage": None}, None),
        ({"readable_records": None, "in_tiered_storage": None, "damaged": None}, None),
    ],
)
def test_the_lag_in_time_is_the_age_of_the_next_record(
    values: dict[str, int | None], expected: int | None
) -> None:
    assert time_lag(**{**READS, **values}) == expected
