"""Which columns a read gives: those of Spark's Kafka source, more where asked, or the user's."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafkalog.errors import OptionError, SchemaError
from kafkalog.schemas import table_fields
from kafkalog.spark.source.projection import projected_columns, view_schema, whole_schema
from kafkalog.views.options.options import HEADERS_COLUMN, KAFKA_COLUMNS, View, read_options

# The schema of Spark's Kafka source, as its documentation has it.
KAFKA: list[tuple[str, DataType]] = [
    ("key", BinaryType()),
    ("value", BinaryType()),
    ("topic", StringType()),
    ("partition", IntegerType()),
    ("offset", LongType()),
    ("timestamp", TimestampType()),
    ("timestampType", IntegerType()),
]
HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
KAFKA_NAMES = [name for name, _ in KAFKA]
METADATA = [
    field["name"]
    for field in table_fields("records")
    if field["name"] not in {*KAFKA_NAMES, HEADERS_COLUMN}
]


def columns(**options: str) -> list[tuple[str, DataType]]:
    schema = view_schema(read_options({"path": "data", **options}))
    return [(field.name, field.dataType) for field in schema]


def names(**options: str) -> list[str]:
    return [name for name, _ in columns(**options)]


def test_the_columns_are_those_of_sparks_kafka_source() -> None:
    assert columns() == KAFKA
    assert list(KAFKA_COLUMNS) == KAFKA_NAMES


def test_headers_are_those_of_sparks_kafka_source() -> None:
    assert columns(includeHeaders="true") == [*KAFKA, ("headers", ArrayType(HEADER))]


def test_metadata_comes_behind_all_other_columns() -> None:
    assert "leaderEpoch" in METADATA
    assert names(includeMetadata="true") == [*KAFKA_NAMES, *METADATA]
    assert names(includeMetadata="true", includeHeaders="true") == [
        *KAFKA_NAMES,
        "headers",
        *METADATA,
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("offset", ["offset"]),
        ("value,key", ["value", "key"]),
        ("headers, magic ,topic", ["headers", "magic", "topic"]),
    ],
)
def test_columns_are_given_in_the_order_asked(value: str, expected: list[str]) -> None:
    assert names(columns=value) == expected


@pytest.mark.parametrize(
    ("view", "table"),
    [("batches", "batches"), ("byte_ranges", "byte_ranges"), ("faults", "byte_ranges")],
)
def test_other_views_give_all_their_columns(view: str, table: str) -> None:
    assert names(view=view) == [field["name"] for field in table_fields(table)]


def test_columns_of_other_views_can_be_chosen() -> None:
    assert names(view="faults", columns="position,kind") == ["position", "kind"]


@pytest.mark.parametrize(
    ("view", "value", "unknown", "known"),
    [
        ("records", "offset,colour", "colour", "timestampType"),
        ("records", "base_offset", "base_offset", "batchBaseOffset"),
        ("batches", "key", "key", "base_offset"),
        ("faults", "a,b", "a, b", "base_offset"),
    ],
)
def test_an_unknown_column_is_an_error_naming_option_and_columns(
    view: str, value: str, unknown: str, known: str
) -> None:
    with pytest.raises(OptionError) as caught:
        columns(view=view, columns=value)
    assert (caught.value.name, caught.value.value) == ("columns", unknown)
    assert f"columns of view {view}: " in str(caught.value)
    assert known in str(caught.value)


def test_a_column_named_twice_is_an_error_naming_the_option() -> None:
    with pytest.raises(OptionError, match="columns"):
        columns(columns="offset,offset")


@pytest.mark.parametrize("view", View)
def test_every_column_is_nullable_and_has_a_comment(view: View) -> None:
    assert [
        field.name
        for field in whole_schema(view)
        if not field.nullable or not field.metadata.get("comment")
    ] == []


@pytest.mark.parametrize("view", View)
def test_the_whole_schema_of_a_view_fits_itself(view: View) -> None:
    schema = whole_schema(view)
    assert projected_columns(view, schema) == tuple(schema.names)


def test_a_users_schema_chooses_columns_in_its_order() -> None:
    schema = StructType().add("offset", LongType()).add("value", BinaryType())
    assert projected_columns(View.RECORDS, schema) == ("offset", "value")


def test_a_users_schema_may_have_no_column() -> None:
    # A count needs none.
    assert projected_columns(View.RECORDS, StructType()) == ()


def test_a_users_schema_may_ask_for_headers() -> None:
    schema = StructType().add("headers", ArrayType(HEADER))
    assert projected_columns(View.RECORDS, schema) == ("headers",)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        pytest.param(
            StructType().add("colour", StringType()),
            ("view records", "colour", "timestampType"),
            id="unknown",
        ),
        pytest.param(
            StructType().add("Offset", LongType()), ("Offset", "offset"), id="another case"
        ),
        pytest.param(
            StructType().add("offset", IntegerType()), ("offset", "bigint", "int"), id="type"
        ),
        pytest.param(
            StructType().add("value", StringType()), ("value", "binary", "string"), id="decoded"
        ),
        pytest.param(
            StructType().add("headers", ArrayType(StringType())),
            ("headers", "array<struct<key:string,value:binary>>", "array<string>"),
            id="element",
        ),
        pytest.param(
            StructType().add("offset", LongType(), nullable=False),
            ("offset", "nullable"),
            id="not null",
        ),
    ],
)
def test_a_users_schema_that_does_not_fit_is_an_error_naming_the_column(
    schema: StructType, said: tuple[str, ...]
) -> None:
    with pytest.raises(SchemaError) as caught:
        projected_columns(View.RECORDS, schema)
    for word in said:
        assert word in str(caught.value)
