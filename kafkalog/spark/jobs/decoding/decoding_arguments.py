"""The arguments that say what keys and values are: `--key-format`, `--value-schema` and so on."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from kafkalog.errors import OptionError, SchemaError
from kafkalog.messages.avro_schemas import read_avro_schema
from kafkalog.messages.schema_registry import SCHEMAS_TOPIC
from kafkalog.storage.log_dir.log_dir import find_partitions

COLUMNS = ("key", "value")


class PayloadKind(Enum):
    """What `--key-format` and `--value-format` can be."""

    STRING = "string"
    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    CONFLUENT_AVRO = "confluent-avro"
    CONFLUENT_JSON = "confluent-json"
    CONFLUENT_PROTOBUF = "confluent-protobuf"

    @property
    def is_confluent(self) -> bool:
        """Whether a schema id stands before each payload."""
        return self.value.startswith("confluent-")

    @property
    def is_protobuf(self) -> bool:
        """Whether payloads are Protobuf, of which Spark needs a descriptor and a message's name."""
        return self in (PayloadKind.PROTOBUF, PayloadKind.CONFLUENT_PROTOBUF)


@dataclass(frozen=True, slots=True)
class DecodingRequest:
    """What is asked for one column. `schemas_topic` are paths that hold the topic `_schemas`."""

    column: str
    kind: PayloadKind
    schema: str | None
    message: str | None
    schema_id: int | None
    schemas_topic: tuple[str, ...]
    mode: str

    def argument(self, name: str) -> str:
        """The name of one of this column's arguments."""
        return f"--{self.column}-{name}"


def with_decoding_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The parser with the arguments for keys, for values and for the schemas of both."""
    group = parser.add_argument_group("decoding", "columns for what keys and values say")
    for column in COLUMNS:
        group.add_argument(
            f"--{column}-format",
            choices=[kind.value for kind in PayloadKind],
            help=f"add {column}_decoded, and {column}_error for what cannot be decoded",
        )
        group.add_argument(
            f"--{column}-schema",
            metavar="SCHEMA",
            help="text or file: for json a Spark DDL or a JSON Schema, for avro an Avro schema, "
            "for protobuf (file only) a descriptor set as protoc --descriptor_set_out writes it",
        )
        group.add_argument(
            f"--{column}-message", metavar="NAME", help="for protobuf: the message's full name"
        )
        group.add_argument(
            f"--{column}-schema-id",
            metavar="ID",
            type=int,
            help="for confluent-avro and confluent-json: read all as this schema (default: the "
            "highest id in the data, deleted ones last)",
        )
    group.add_argument(
        "--schemas-topic",
        metavar="PATH",
        help=f"for confluent formats: the directory of {SCHEMAS_TOPIC}-0, or a log directory with "
        "it (default: the LOG_DIRs)",
    )
    return parser


def decoding_requests(args: argparse.Namespace) -> list[DecodingRequest]:
    """What is asked for, of the columns for which anything is.

    Raises OptionError where arguments contradict each other or miss something, or name a file that
    is no schema, LogDirError for a `--schemas-topic` that cannot be read.
    """
    requests = [request for column in COLUMNS if (request := _request(args, column))]
    if args.schemas_topic and not any(request.kind.is_confluent for request in requests):
        allowed = "nothing, unless a format is one of Confluent's"
        raise OptionError("--schemas-topic", args.schemas_topic, allowed)
    for request in requests:
        _refuse_schema(request)
    return requests


def _refuse_schema(request: DecodingRequest) -> None:
    """Raise OptionError for a given schema that is none, so far as that shows without Spark."""
    if request.schema is None:
        return
    if request.kind.is_protobuf:
        descriptor_bytes(request)
    elif request.kind in (PayloadKind.AVRO, PayloadKind.CONFLUENT_AVRO):
        try:
            read_avro_schema(schema_text(request))
        except SchemaError as error:
            raise unusable_schema(request, error) from error


def unusable_schema(request: DecodingRequest, error: SchemaError) -> OptionError:
    """What to raise where a given schema cannot be used."""
    allowed = f"a schema that Spark can use: {error}"
    return OptionError(request.argument("schema"), request.schema, allowed)


def _request(args: argparse.Namespace, column: str) -> DecodingRequest | None:
    schema, message, schema_id = (
        getattr(args, f"{column}_{name}") for name in ("schema", "message", "schema_id")
    )
    given = getattr(args, f"{column}_format")
    kind = PayloadKind(given) if given else None
    # Per argument: its value, whether this format takes it, and what it must be if it has to be.
    needs_schema = kind in (PayloadKind.JSON, PayloadKind.AVRO) or (kind and kind.is_protobuf)
    takes_id = kind in (PayloadKind.CONFLUENT_AVRO, PayloadKind.CONFLUENT_JSON) and not schema
    _check(f"--{column}-schema", schema, kind not in (None, PayloadKind.STRING), needs_schema)
    is_protobuf = kind is not None and kind.is_protobuf
    _check(f"--{column}-message", message, is_protobuf, is_protobuf)
    _check(f"--{column}-schema-id", schema_id, takes_id, False)
    if kind is None:
        return None
    topic = _schemas_topic(args) if kind.is_confluent else ()
    return DecodingRequest(column, kind, schema, message, schema_id, topic, args.mode)


def _check(name: str, value: object, is_taken: bool, is_needed: object) -> None:
    if value is not None and not is_taken:
        raise OptionError(name, value, f"nothing, with what else is given (see --help on {name})")
    if value is None and is_needed:
        raise OptionError(name, "nothing", "a value, which this format needs; see --help")


def _schemas_topic(args: argparse.Namespace) -> tuple[str, ...]:
    paths: Sequence[str] = [args.schemas_topic] if args.schemas_topic else args.log_dirs
    logs = find_partitions(paths, strict=False)
    found = [log for log in logs if log.topic == SCHEMAS_TOPIC]
    if not found:
        raise OptionError(
            "--schemas-topic",
            args.schemas_topic or "nothing",
            f"the directory of {SCHEMAS_TOPIC}-0 or a log directory with it; there is none in "
            + ", ".join(paths),
        )
    return tuple(paths)


def schema_text(request: DecodingRequest) -> str:
    """The schema that was given: the contents of the file, or the argument itself.

    Raises OptionError for a file that is no text.
    """
    given = request.schema or ""
    if not os.path.isfile(given):
        return given
    try:
        return _contents(given).decode("utf-8")
    except UnicodeDecodeError as error:
        raise OptionError(request.argument("schema"), given, "text in UTF-8") from error


def descriptor_bytes(request: DecodingRequest) -> bytes:
    """The descriptor set that was given. Raises OptionError where there is no such file."""
    given = request.schema or ""
    if not os.path.isfile(given):
        allowed = "a file as protoc --include_imports --descriptor_set_out writes it"
        raise OptionError(request.argument("schema"), given, allowed)
    return _contents(given)


def _contents(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
