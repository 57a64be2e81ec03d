"""The arguments that say what keys and values are."""

from pathlib import Path

import click
import pytest

from kafkalog.errors import OptionError
from kafkalog.lake.decoding.decoding_requests import (
    DecodingOptions,
    DecodingRequest,
    PayloadKind,
    decoding_options,
    decoding_requests,
    schema_text,
)
from tests.support.logs.log_dirs import add_partition


def requests(arguments: str, log_dir: str = "-") -> list[DecodingRequest]:
    found: list[DecodingOptions] = []
    command = click.command()(decoding_options(lambda decoding: found.append(decoding)))
    command.main(arguments.split(), standalone_mode=False)
    return decoding_requests(found[0], [log_dir], "PERMISSIVE")


def test_nothing_is_requested_by_default() -> None:
    assert requests("") == []


def test_a_request_has_what_was_given() -> None:
    assert requests("--key-format string --value-format json --value-schema a:INT") == [
        DecodingRequest("key", PayloadKind.STRING, None, None, None, (), "PERMISSIVE"),
        DecodingRequest("value", PayloadKind.JSON, "a:INT", None, None, (), "PERMISSIVE"),
    ]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("--value-format json", "--value-schema"),
        ("--value-format avro", "--value-schema"),
        ("--value-format protobuf --value-message M", "--value-schema"),
        ("--value-format confluent-protobuf --value-message M", "--value-schema"),
        ("--value-format protobuf --value-schema x", "--value-message"),
        ("--value-format string --value-schema x", "--value-schema"),
        ("--value-schema x", "--value-schema"),
        ("--value-format avro --value-schema x --value-message M", "--value-message"),
        ("--value-format avro --value-schema x --value-schema-id 1", "--value-schema-id"),
        ("--key-format confluent-avro --key-schema x --key-schema-id 1", "--key-schema-id"),
        ("--value-format string --schemas-topic x", "--schemas-topic"),
        ("--schemas-topic x", "--schemas-topic"),
    ],
)
def test_what_is_missing_or_too_much_is_named(arguments: str, name: str) -> None:
    with pytest.raises(OptionError) as caught:
        requests(arguments)
    assert caught.value.name == name


def test_the_topic_of_schemas_is_looked_for_in_the_log_directories(tmp_path: Path) -> None:
    add_partition(tmp_path, "orders-0")
    with pytest.raises(OptionError, match="--schemas-topic: missing"):
        requests("--value-format confluent-avro", str(tmp_path))
    add_partition(tmp_path, "_schemas-0")
    (found,) = requests("--value-format confluent-avro", str(tmp_path))
    assert found.schemas_topic == (str(tmp_path),)
    given = f"--value-format confluent-json --schemas-topic {tmp_path}/_schemas-0"
    assert requests(given)[0].schemas_topic == (f"{tmp_path}/_schemas-0",)


def test_a_schema_is_a_text_or_a_file_of_it(tmp_path: Path) -> None:
    path = tmp_path / "schema.ddl"
    path.write_text("id BIGINT")
    (by_file,) = requests(f"--value-format json --value-schema {path}")
    (by_text,) = requests("--value-format json --value-schema id:BIGINT")
    assert (schema_text(by_file), schema_text(by_text)) == ("id BIGINT", "id:BIGINT")
    path.write_bytes(b"\xff")
    with pytest.raises(OptionError, match="text in UTF-8"):
        schema_text(by_file)
