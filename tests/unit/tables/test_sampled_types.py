"""JSON values as columns. Rules: docs/sql.md F1072; docs/format.md F291, F292."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.arrow_types import arrow_type
from kafkalog.lake.decoding.payload_arrays import PayloadDecoder
from kafkalog.messages.payload_formats import JsonFormat, TextFormat
from kafkalog.tables.decoded_source import sampled_type

SAMPLE = [b'{"a":1,"b":{"c":"x"},"d":[1.5],"m":1}', b'{"z":true,"m":"text"}', b"not json"]
NOT_OF_IT = "JSON, but not of the fields that a sample shows"


def decoded(values: list[bytes | None], sample: list[bytes], form: str = "json") -> list[Any]:
    batch = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
    found = TextFormat() if form == "string" else JsonFormat(json.dumps(sampled_type(sample)))
    rows = PayloadDecoder("value", found, NOT_OF_IT).with_decoded(batch).to_pylist()
    return [(row["value_decoded"], row["value_error"]) for row in rows]


def test_fields_are_those_that_have_one_type_in_the_sample() -> None:
    # F1072
    assert arrow_type(sampled_type(SAMPLE)) == pa.struct(
        [
            pa.field("a", pa.int64()),
            pa.field("b", pa.struct([pa.field("c", pa.string())])),
            pa.field("d", pa.list_(pa.field("element", pa.float64()))),
            pa.field("z", pa.bool_()),
        ]
    )


def row(**given: Any) -> dict[str, Any]:
    return {**dict.fromkeys(("a", "b", "d", "z")), **given}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"a": 2, "unknown": [1, {}]}', (row(a=2), None)),
        (b'{"d": [1, 2.5]}', (row(d=[1.0, 2.5]), None)),
        (b'{\n "b":\r\n {"c": "2026-01-01"}}', (row(b={"c": "2026-01-01"}), None)),
        (b"null", (None, None)),
        (None, (None, None)),
        (b'{"a": 1.5}', (None, NOT_OF_IT)),
        (b'{"a": "1"}', (None, NOT_OF_IT)),
        (b'{"a": 18446744073709551616}', (None, NOT_OF_IT)),
        (b"[1]", (None, NOT_OF_IT)),
        (b"", (None, "not JSON")),
        (b'{"a": 1', (None, "not JSON")),
        (b'{"a": NaN}', (None, "not JSON")),
        (b'{"a": 1}{"a": 2}', (None, "not JSON")),
        (b'{"a":1},"k":{"a":2}', (None, "not JSON")),
        (b'{"a":1}],"":[{"a":2}', (None, "not JSON")),
        (b'{"b": {"c": "two\nlines"}}', (row(b={"c": "two lines"}), None)),
        (b"[" * 100_000, (None, "not JSON")),
        (b"\xff\xfe", (None, "not JSON")),
    ],
)
def test_a_value_is_decoded_or_null_with_the_reason(
    value: bytes | None, expected: tuple[object, object]
) -> None:
    # F1072: the values around it are decoded, whatever it is.
    around = b'{"a": 1}'
    beside = (row(a=1), None)
    assert decoded([around, value, around], SAMPLE) == [beside, expected, beside]


def test_text_is_what_is_utf_8() -> None:
    # F291
    expected = [("é", None), (None, "not UTF-8"), (None, None), ("", None)]
    assert decoded(["é".encode(), b"\xe9", None, b""], [], "string") == expected


def test_a_topic_without_json_has_no_fields() -> None:
    assert decoded([b"\x00\x01", b'"text"'], [b"\x00\x01"]) == [(None, "not JSON"), ("text", None)]


NUMBERS = st.integers(-(2**53), 2**53)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "number": NUMBERS,
        "text": st.text(),
        "list": st.lists(st.booleans(), max_size=3),
        "inner": st.fixed_dictionaries({}, optional={"decoded": NUMBERS, "": st.text()}),
    },
)


@given(st.lists(OBJECTS, min_size=1, max_size=8))
def test_values_that_json_writes_are_read_as_they_were(values: list[dict[str, Any]]) -> None:
    values = [{"number": 1}, *values]  # where no object has a field, none is known
    written = [json.dumps(value).encode() for value in values]
    for (found, error), value in zip(decoded([*written], written), values, strict=True):
        assert error is None
        assert _without_nulls(found) == _without_nulls(value)


def _without_nulls(value: Any) -> Any:
    """A value without what no column has: empty objects and lists, and null."""
    if isinstance(value, dict):
        inner = {name: _without_nulls(each) for name, each in value.items() if each is not None}
        return {name: each for name, each in inner.items() if each not in ({}, [])}
    return {} if value is None else value


PARTS = st.sampled_from([b'{"a":1}', b"1", b"]", b'"'])


@given(st.lists(st.binary(max_size=20) | PARTS, max_size=6))
def test_any_bytes_have_a_value_or_a_reason_as_pythons_reader_says(values: list[bytes]) -> None:
    # F292
    for (found, error), value in zip(decoded([*values], [b'{"a":1}']), values, strict=True):
        try:
            parsed = json.loads(value.decode())
        except (UnicodeDecodeError, ValueError):
            assert found is None
            assert error in ("not UTF-8", "not JSON")
            continue
        if isinstance(parsed, dict) and type(parsed.get("a", 0)) is int:
            assert error is None
        elif isinstance(parsed, dict):
            assert error == NOT_OF_IT or parsed["a"] is None
        else:
            assert error == (None if parsed is None else NOT_OF_IT)
