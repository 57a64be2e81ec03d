"""What a filter of Arrow's leaves to read. Rules: docs/sql.md F1070, F1071."""

import operator
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.format.offsets import LARGEST_OFFSET, OffsetSpan
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.offset_ranges import TimestampRange
from kafkalog.tables.filters import Filter
from kafkalog.testing import LogDirectory

SCHEMA = arrow_schema("records", ("topic", "partition", "offset", "timestamp", "value"))
FIELD = {name: pc.field(name) for name in SCHEMA.names}


def time(milliseconds: int) -> pa.Scalar:
    return pa.scalar(milliseconds * 1000, pa.timestamp("us", tz="UTC"))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[PartitionLog]:
    """orders-0, orders-1 and users-0."""
    directory = LogDirectory(tmp_path_factory.mktemp("filters") / "logs")
    for name, partitions in (("orders", 2), ("users", 1)):
        topic = directory.topic(name, partitions=partitions)
        for number in range(partitions):
            topic.records([("key", "value")], partition=number)
    return find_partitions([directory.write()])


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        (FIELD["topic"] == "users", ["users-0"]),
        (FIELD["topic"].isin(["users", "absent"]), ["users-0"]),
        (FIELD["partition"] == 1, ["orders-1"]),
        ((FIELD["topic"] == "users") | (FIELD["partition"] > 0), ["orders-1", "users-0"]),
        (FIELD["topic"].is_null(), []),
        (FIELD["offset"] > 3, ["orders-0", "orders-1", "users-0"]),
        (pc.starts_with(FIELD["topic"], "u"), ["users-0"]),
    ],
)
def test_logs_are_left_out_that_no_row_can_pass_of(
    logs: list[PartitionLog], expression: pc.Expression, names: list[str]
) -> None:
    # F1070
    assert [log.name for log in Filter(expression, SCHEMA).logs(logs)] == names


@pytest.mark.parametrize(
    ("expression", "span"),
    [
        (FIELD["offset"] >= 100, OffsetSpan(100, LARGEST_OFFSET)),
        (FIELD["offset"] == 7, OffsetSpan(7, 8)),
        ((FIELD["offset"] > 7) & (FIELD["offset"] <= 9), OffsetSpan(8, 10)),
        (FIELD["offset"].isin([900, 5]), OffsetSpan(5, 901)),
        ((FIELD["offset"] < 3) | (FIELD["offset"] == 40), OffsetSpan(0, 41)),
        (FIELD["offset"] < 0, OffsetSpan(0, 0)),
        (~(FIELD["offset"] != 7), OffsetSpan(7, 8)),
        (FIELD["offset"] + 1 > 7, OffsetSpan(0, LARGEST_OFFSET)),
    ],
)
def test_offsets_are_the_smallest_span_that_rows_can_pass_of(
    logs: list[PartitionLog], expression: pc.Expression, span: OffsetSpan
) -> None:
    # F1071
    found = Filter(expression, SCHEMA).offsets("offset", logs)
    assert found is not None
    assert set(found.values()) == {span}


def test_each_log_has_its_own_offsets(logs: list[PartitionLog]) -> None:
    # F1071
    expression = ((FIELD["topic"] == "users") & (FIELD["offset"] > 5)) | (FIELD["offset"] == 2)
    assert Filter(expression, SCHEMA).offsets("offset", logs) == {
        ("orders", 0): OffsetSpan(2, 3),
        ("orders", 1): OffsetSpan(2, 3),
        ("users", 0): OffsetSpan(2, LARGEST_OFFSET),
    }


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        ((FIELD["timestamp"] >= time(5)) & (FIELD["timestamp"] < time(9)), TimestampRange(5, 9)),
        (FIELD["timestamp"] == time(5), TimestampRange(5, 6)),
        ((FIELD["timestamp"] >= time(5)) | FIELD["timestamp"].is_null(), None),
        (FIELD["offset"] == 1, None),
    ],
)
def test_times_are_those_of_rows_that_can_pass_and_rows_without_one_are_never_lost(
    expression: pc.Expression, times: TimestampRange | None
) -> None:
    # F1071
    assert Filter(expression, SCHEMA).times("timestamp") == times


COMPARISONS = st.builds(
    lambda column, compare, value: compare(FIELD[column], value),
    st.sampled_from(["offset", "partition"]),
    st.sampled_from([operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt]),
    st.integers(-2, 12),
) | st.builds(operator.eq, st.just(FIELD["topic"]), st.sampled_from(["orders", "users", ""]))
EXPRESSIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.builds(
        lambda combine, given: reduce(combine, given),
        st.sampled_from([operator.and_, operator.or_]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=5,
)


@given(EXPRESSIONS)
def test_no_row_that_passes_lies_outside_of_what_is_left(
    logs: list[PartitionLog], expression: pc.Expression
) -> None:
    # F1070, F1071
    rows: list[dict[str, Any]] = [
        {"topic": log.topic, "partition": log.partition, "offset": offset}
        for log in logs
        for offset in range(10)
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    chosen = Filter(expression, SCHEMA)
    passing = [row for part in chosen.rows(batch, SCHEMA.names[:3]) for row in part.to_pylist()]
    left = chosen.logs(logs)
    spans = chosen.offsets("offset", left)
    for row in passing:
        key = row["topic"], row["partition"]
        assert key in [log.topic_partition for log in left]
        assert spans is None or spans[key].start <= row["offset"] < spans[key].end
