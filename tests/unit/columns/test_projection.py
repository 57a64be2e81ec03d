"""Only the asked columns are made, and they are what a full read makes of them."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import SchemaError
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.schemas import table_fields
from kafkalog.wire.compression import CompressionType
from tests.support.golden.fixture_sets import unique_segments
from tests.support.logs.samples import batch, joined, record, segments
from tests.support.logs.segment_tables import records_table
from tests.support.repository import Unpack

ALL = tuple(field["name"] for field in table_fields("records"))
CONSTANTS: dict[str, str | int | None] = {
    "topic": "orders",
    "partition": 7,
    "file": "/data/orders-7/0.log",
}
some_columns = st.permutations(ALL).flatmap(
    lambda names: st.integers(0, len(names)).map(lambda count: names[:count])
)


@given(segments(), some_columns)
def test_any_columns_in_any_order_are_those_of_the_full_read(
    segment: tuple[list[bytes], list[Record]], columns: list[str]
) -> None:
    data, expected = joined(segment[0]), segment[1]
    full = records_table(data, ALL, constants=CONSTANTS)
    part = records_table(data, columns, constants=CONSTANTS)
    part.validate(full=True)
    assert part.num_rows == len(expected)
    assert part.column_names == list(columns)
    assert part == full.select(columns)


@pytest.mark.parametrize("name", ["kafka39zk", "kafka010"])
def test_offsets_and_timestamps_alone_are_those_of_the_full_read_of_real_files(
    name: str, unpacked: Unpack
) -> None:
    rows = 0
    for segment in unique_segments(unpacked(f"{name}.logs")):
        data = segment.path.read_bytes()
        part = records_table(data, ("offset", "timestamp"), base_offset=segment.base_offset)
        full = records_table(data, ALL, constants=CONSTANTS, base_offset=segment.base_offset)
        assert part == full.select(["offset", "timestamp"]), segment.path
        rows += part.num_rows
    assert rows > 5000


def test_rows_are_counted_without_any_column() -> None:
    table = records_table(joined([batch(0), batch(3)]), ())
    assert (table.num_rows, table.num_columns) == (6, 0)


def test_a_column_that_the_view_does_not_have_is_an_error() -> None:
    with pytest.raises(SchemaError, match="records has no column body"):
        records_table(batch(0), ("offset", "body"))


# What a pool gave, a thread or a cache can give back later: none may have been freed by then.
POOLS: list[pa.MemoryPool] = []


def most_memory(read: Callable[[], object]) -> int:
    """How many bytes Arrow's pool had to give at the same time."""
    usual = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(usual)
    POOLS.append(counting)
    pa.set_memory_pool(counting)
    try:
        read()
        return int(counting.max_memory())
    finally:
        pa.set_memory_pool(usual)


VALUE = b"v" * 1_000_000
NARROW = ("offset", "timestamp", "timestampType", "leaderEpoch", "position")


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
def test_no_memory_is_taken_for_fields_without_a_request(codec: CompressionType) -> None:
    records = [Record(i, 1, 0, VALUE, VALUE, (("name", VALUE),)) for i in range(2)]
    data = write_batch(records, BatchFields(compression=codec))
    assert most_memory(lambda: records_table(data, NARROW)) < 50_000
    # The measure itself: with the values it is what they are at least.
    assert most_memory(lambda: records_table(data, ("value",))) >= 2 * len(VALUE)


@pytest.mark.parametrize(("column", "size"), [("key", 100_000), ("value", 200_000)])
def test_one_field_does_not_bring_the_others_along(column: str, size: int) -> None:
    item = Record(0, 1, 0, b"k" * 100_000, b"v" * 200_000, (("n", b"h" * 300_000),))
    table = records_table(write_batch([item]), (column,))
    assert size <= table.get_total_buffer_size() < size + 1000


def test_constants_stand_on_every_row() -> None:
    data = joined(
        [batch(0), write_batch([record(3)], BatchFields(compression=CompressionType.LZ4))]
    )
    table = records_table(data, ("partition", "offset", "topic", "file"), constants=CONSTANTS)
    assert table.to_pylist() == [
        {"partition": 7, "offset": offset, "topic": "orders", "file": "/data/orders-7/0.log"}
        for offset in range(4)
    ]


@pytest.mark.parametrize("column", ["partition", "topic"])
def test_a_constant_may_be_null(column: str) -> None:
    # A segment in a directory that is not named <topic>-<partition> has neither.
    table = records_table(batch(0), (column,), constants={column: None})
    assert table.to_pylist() == [{column: None}] * 3
