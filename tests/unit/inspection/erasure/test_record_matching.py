"""Which records of an Arrow batch match. Rules: docs/erasure.md F1106 to F1109."""

import json
from collections.abc import Collection

import pyarrow as pa

from kafkalog.columns.records.record_metadata import record_schema
from kafkalog.inspection.erasure.identifiers import Identifier, Kind
from kafkalog.inspection.erasure.record_matching import RecordMatcher, Texts, everywhere

Header = tuple[str, bytes | None]


def _records(*rows: tuple[bytes | None, bytes | None, list[Header]]) -> pa.RecordBatch:
    headers = [[{"key": name, "value": value} for name, value in row[2]] for row in rows]
    schema = record_schema(("key", "value", "headers"))
    return pa.RecordBatch.from_pydict(
        {"key": [row[0] for row in rows], "value": [row[1] for row in rows], "headers": headers},
        schema=schema,
    )


def _found(records: pa.RecordBatch, *identifiers: Identifier) -> list[int]:
    mask = RecordMatcher(identifiers).matches(records)
    return [row for row, is_found in enumerate(mask.tolist()) if is_found]


def test_a_key_is_compared_as_a_whole() -> None:
    # F1106.
    records = _records((b"a", b"1", []), (b"ab", b"2", []), (None, b"a", []), (b"a", None, []))
    assert _found(records, Identifier(Kind.KEY, b"a")) == [0, 3]
    assert _found(records, Identifier(Kind.KEY, b"")) == []


def test_a_header_is_name_and_value_of_one_and_the_same() -> None:
    # F1106.
    records = _records(
        (b"k", b"v", [("user", b"x"), ("user", b"a")]),
        (b"k", b"v", [("user", b"x"), ("other", b"a")]),
        (b"k", b"v", []),
        (b"k", b"v", [("user", None)]),
    )
    wanted = Identifier(Kind.HEADER, b"a", "user")
    assert _found(records, wanted) == [0]
    assert _found(records.slice(1), wanted) == []
    assert _found(records.slice(0, 1), wanted) == [0]


def test_text_is_found_anywhere() -> None:
    # F1106.
    records = _records(
        (b"x-Ada", b"1", []),
        (b"k", b"{Ada}", []),
        (b"k", None, [("h", b"by Ada")]),
        (None, b"Bob", [("h-Ada", None)]),
        (None, b"Bob", []),
    )
    assert _found(records, Identifier(Kind.TEXT, b"Ada")) == [0, 1, 2, 3]


def test_a_value_at_a_path_is_found_however_json_writes_it() -> None:
    # F1107: as it is, with escapes, and numbers in each form.
    records = _records(
        (b"k", b'{"name": "Zo\\u00eb"}', []),
        (b"k", '{"name": "Zoë"}'.encode(), []),
        (b"k", '{"other": "Zoë"}'.encode(), []),
        (b"k", b"[]", []),
        (b"k", None, []),
        (b"k", b"not json", []),
    )
    wanted = Identifier(Kind.VALUE_PATH, "Zoë".encode(), "$.name")
    assert _found(records, wanted) == [0, 1]
    numbers = _records((b"k", b'{"id": 1.7e1}', []), (b"k", b'{"id": 170}', []))
    assert _found(numbers, Identifier(Kind.VALUE_PATH, b"17", "$.id")) == [0]


def test_values_that_nothing_decodes_are_counted() -> None:
    # F1108: absence is claimed only of what was decoded.
    records = _records((b"k", b"\0\0\0\0\1x", []), (b"k", b"\xffAda", []), (b"k", b"{Ada", []))
    matcher = RecordMatcher([Identifier(Kind.VALUE_PATH, b"Ada", "$.name")])
    assert not matcher.matches(records).any()
    assert matcher.undecoded == 3
    keys = RecordMatcher([Identifier(Kind.KEY, b"Ada")])
    keys.matches(records)
    assert keys.undecoded == 0


class _Framed:
    def __call__(self, data: bytes) -> object:
        if data[:1] != b"\0":
            raise ValueError("not framed")
        return json.loads(data[5:])

    def texts_in(self, schema_id: int, texts: Collection[str]) -> Texts | None:
        return Texts.IN_JSON if schema_id == 1 else None

    def hides(self, texts: Collection[str]) -> bool:
        return False


def test_a_decoder_reads_what_is_not_json() -> None:
    # F1108.
    records = _records((b"k", b'\0\0\0\0\1{"name": "Ada"}', []), (b"k", b"\xff", []))
    matcher = RecordMatcher([Identifier(Kind.VALUE_PATH, b"Ada", "$.name")], [_Framed()])
    assert matcher.matches(records).tolist() == [True, False]
    assert matcher.undecoded == 1


def test_internal_topics_are_searched_for_the_values_anywhere() -> None:
    # F1109.
    given = [Identifier(Kind.KEY, b"a"), Identifier(Kind.HEADER, b"a", "user")]
    assert everywhere(given) == [Identifier(Kind.TEXT, b"a")]


def test_keys_in_longer_keys_and_in_values_are_counted_and_not_found() -> None:
    # F1265: a key of a window of Kafka Streams, one with a schema's id, one in a value.
    records = _records(
        (b"cust-17", b"cust-17", []),
        (b"cust-17" + bytes(12), b"v", []),
        (b"\0\0\0\0\1\x0ecust-17", b"v", []),
        (b"order", b'{"customer": "cust-17"}', []),
        (b"order", b"v", []),
        (None, None, []),
    )
    matcher = RecordMatcher([Identifier(Kind.KEY, b"cust-17")])
    assert matcher.matches(records).tolist() == [True, False, False, False, False, False]
    assert matcher.elsewhere == 3
    few = RecordMatcher([Identifier(Kind.KEY, b"17")])
    assert (bool(few.matches(records).any()), few.elsewhere) == (False, 0)
