"""Keys and values of a registry's serializers. Rule: docs/erasure.md F1262.

Confluent's format: a zero byte, the schema's id, and what Avro or Protobuf make of the value.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from kafkalog.columns.records.record_metadata import record_schema
from kafkalog.command_line.main import kafkalog
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.erasure.file_search import Wanted, search_file
from kafkalog.inspection.erasure.identifiers import Identifier, Kind
from kafkalog.inspection.erasure.input_files import input_files
from kafkalog.inspection.erasure.record_matching import RecordMatcher
from kafkalog.inspection.erasure.registered_values import RegisteredValues
from kafkalog.messages.decoding.registry_sources import registry_at

_RECORD = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "customer", "type": "string"}, {"name": "n", "type": "int"}],
}
_ENUM = {
    "type": "record",
    "name": "Place",
    "fields": [{"name": "is", "type": {"type": "enum", "name": "E", "symbols": ["here", "there"]}}],
}
_PROTO = 'syntax = "proto3"; message Order { string customer = 1; }'


def _framed(schema_id: int, data: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + data


def _registry(directory: Path) -> Path:
    directory.mkdir()
    (directory / "1.avsc").write_text(json.dumps(_RECORD))
    (directory / "2.avsc").write_text('"string"')
    (directory / "3.proto").write_text(_PROTO)
    (directory / "4.avsc").write_text(json.dumps(_ENUM))
    (directory / "5.json").write_text("{}")
    return directory


def _matches(tmp_path: Path, identifier: Identifier, *values: bytes) -> tuple[list[bool], int]:
    columns = {"key": values, "value": values, "headers": [[] for _ in values]}
    records = pa.RecordBatch.from_pydict(columns, schema=record_schema(tuple(columns)))
    decoder = RegisteredValues(registry_at(str(_registry(tmp_path / "schemas"))))
    matcher = RecordMatcher([identifier], [decoder])
    return matcher.matches(records).tolist(), matcher.undecoded


_AVRO = _framed(1, b"\x0ecust-17\x22")
_OTHER = _framed(1, b"\x0ecust-18\x22")
_PROTOBUF = _framed(3, b"\0\x0a\x07cust-17")
_JSON = _framed(5, b'{"customer": "cust\\u002d17"}')


def test_values_at_a_path_are_found_in_each_format(tmp_path: Path) -> None:
    wanted = Identifier(Kind.VALUE_PATH, b"cust-17", "$.customer")
    unknown = _framed(9, b"\x0ecust-17")
    values = (_AVRO, _OTHER, _PROTOBUF, _JSON, unknown, b'{"customer": "cust-17"}')
    assert _matches(tmp_path, wanted, *values) == ([True, False, True, True, False, True], 1)


def test_numbers_and_symbols_are_found_though_their_texts_are_not_in_the_bytes(
    tmp_path: Path,
) -> None:
    wanted = Identifier(Kind.VALUE_PATH, b"17", "$.n")
    assert _matches(tmp_path, wanted, _AVRO, _framed(1, b"\x02a\x02")) == ([True, False], 0)
    there = Identifier(Kind.VALUE_PATH, b"there", "$.is")
    registry = tmp_path / "schemas"
    for path in registry.iterdir():
        path.unlink()
    registry.rmdir()
    assert _matches(tmp_path, there, _framed(4, b"\2"), _framed(4, b"\0")) == ([True, False], 0)


def test_keys_are_found_with_a_schemas_id_before_them(tmp_path: Path) -> None:
    wanted = Identifier(Kind.KEY, b"cust-17")
    values = (_framed(2, b"\x0ecust-17"), b"cust-17", _framed(2, b"\x0ecust-18"), b"\0\1")
    assert _matches(tmp_path, wanted, *values) == ([True, True, False, False], 0)


def test_keys_are_found_at_a_path(tmp_path: Path) -> None:
    wanted = Identifier(Kind.KEY_PATH, b"cust-17", "$.customer")
    values = (_AVRO, b'{"customer": "cust-17"}', b"\xff", b'{"other": "cust-17"}')
    assert _matches(tmp_path, wanted, *values) == ([True, True, False, False], 1)


def _log(directory: Path, pairs: list[tuple[bytes, bytes]]) -> None:
    directory.mkdir(parents=True)
    records = [Record(offset, 1, 0, *pair) for offset, pair in enumerate(pairs)]
    (directory / f"{0:020d}.log").write_bytes(write_batch(records))


def test_schemas_come_from_the_inputs_or_from_a_directory(tmp_path: Path) -> None:
    # The record of `_schemas` as Confluent's registry 7.9 writes it.
    key = {"keytype": "SCHEMA", "subject": "orders-value", "version": 1, "magic": 1}
    schema = {"subject": "orders-value", "version": 1, "id": 1, "schema": json.dumps(_RECORD)}
    _log(tmp_path / "kafka" / "orders-0", [(b"k", _AVRO), (b"k", _OTHER)])
    given = ["--value-path", "$.customer=cust-17", "--check"]
    code, out = _erase(str(tmp_path / "kafka"), *given)
    assert (code, "NOT DECODED: 2 values" in out) == (1, True)
    registry = str(_registry(tmp_path / "schemas"))
    code, out = _erase(str(tmp_path / "kafka"), *given, "--schema-registry", registry)
    assert "1 record found in 1 topic" in out
    pair = json.dumps(key).encode(), json.dumps({**schema, "deleted": False}).encode()
    _log(tmp_path / "kafka" / "_schemas-0", [pair])
    code, out = _erase(str(tmp_path / "kafka"), *given, "--topic", "orders")
    assert (code, "1 record found in 1 topic" in out, "NOT DECODED" in out) == (1, True, False)
    target = str(tmp_path / "new")
    arguments = (*given[:2], "--topic", "orders", "--to", target)
    assert _erase(str(tmp_path / "kafka"), *arguments)[0] == 0
    assert "no record found" in _erase(target, *given, "--topic", "orders")[1]


def _erase(*arguments: str) -> tuple[int, str]:
    run: Callable[..., object] = CliRunner().invoke
    result = run(kafkalog, ["erase", *arguments])
    return result.exit_code, result.output  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("identifier", "has_sieve"),
    [
        (Identifier(Kind.VALUE_PATH, b"cust-17", "$.customer"), True),
        (Identifier(Kind.KEY_PATH, b"cust-17", "$"), True),
        (Identifier(Kind.KEY, b"cust-17"), True),
        # A symbol of an enumeration; what can be a number, or the word of a format.
        (Identifier(Kind.VALUE_PATH, b"there", "$.is"), False),
        (Identifier(Kind.KEY, b"17"), False),
        (Identifier(Kind.KEY, b"null"), False),
    ],
)
def test_batches_without_the_bytes_are_passed_over_with_the_same_answer(
    identifier: Identifier, has_sieve: bool, tmp_path: Path
) -> None:
    # F1315: JSON's escapes are in batches of their own, and so are unknown schemas and UTF-16,
    # which nothing decodes.
    decoder = RegisteredValues(registry_at(str(_registry(tmp_path / "schemas"))))
    values = [
        *(_AVRO, _OTHER, _PROTOBUF, _JSON, _framed(4, b"\2"), _framed(4, b"\0")),
        *(_framed(2, b"\x0ecust-17"), _framed(2, b"\x0ecust-18"), _framed(2, b"\x0417")),
        *(_framed(9, b"\x0ecust-18"), _framed(5, '{"customer": "cust-17"}'.encode("utf-16"))),
        *(_framed(5, b'{"customer": "cust-18"}'), b"\1" * 20, b"\0", b'"cust-17"', b"cust-17"),
        *(b'{"customer": "cust-18"}', b"null", b"\xff", b"17"),
    ]
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    path.parent.mkdir()
    path.write_bytes(
        b"".join(
            write_batch([Record(offset, 1, 0, value, value)]) for offset, value in enumerate(values)
        )
    )
    matcher = RecordMatcher([identifier], [decoder])
    assert (matcher.sieve is not None) == has_sieve
    (entry,) = input_files(str(tmp_path / "orders-0"))
    found = search_file(entry, Wanted([identifier], decoders=[decoder]))
    columns = {"key": values, "value": values, "headers": [[] for _ in values]}
    mask = matcher.matches(pa.RecordBatch.from_pydict(columns, record_schema(tuple(columns))))
    assert found.hits.offsets.tolist() == [n for n, is_one in enumerate(mask.tolist()) if is_one]
    assert len(found.hits) > 0
    assert found.undecoded == matcher.undecoded
    assert (found.undecoded > 0) == (identifier.kind is not Kind.KEY)


def test_a_registry_that_is_none_is_refused(tmp_path: Path) -> None:
    _log(tmp_path / "kafka" / "orders-0", [(b"k", _AVRO)])
    given = ("--key", "a", "--check", "--schema-registry", str(tmp_path))
    assert _erase(str(tmp_path / "kafka"), *given)[0] == 2
