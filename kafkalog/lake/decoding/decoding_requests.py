"""The options that say what keys and values are: `--key-format`, `--value-schema` and so on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import click

from kafkalog.errors import ConflictingOptionsError, OptionError, RefusedOptionError, SchemaError
from kafkalog.messages.avro_schemas import read_avro_schema
from kafkalog.messages.schema_registry import SCHEMAS_TOPIC
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.option_values import chosen

if TYPE_CHECKING:
    from kafkalog.inspection.erasure.suppression import Suppression

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
        """Whether a schema id precedes each payload."""
        return self.value.startswith("confluent-")

    @property
    def is_protobuf(self) -> bool:
        """Whether payloads are Protobuf: Spark needs a descriptor and a message's name."""
        return self in (PayloadKind.PROTOBUF, PayloadKind.CONFLUENT_PROTOBUF)

    @property
    def is_avro(self) -> bool:
        """Whether payloads are Avro: Spark needs the jar of spark-avro."""
        return self in (PayloadKind.AVRO, PayloadKind.CONFLUENT_AVRO)


@dataclass(frozen=True, slots=True)
class DecodingRequest:
    """How to decode one column. `schemas_topic` are paths that hold the topic `_schemas`;
    with `registry`, a URL or a directory, they are not read."""

    column: str
    kind: PayloadKind
    schema: str | None
    message: str | None
    schema_id: int | None
    schemas_topic: tuple[str, ...]
    mode: str
    registry: str | None = None

    @property
    def is_pinned(self) -> bool:
        """Whether the options name the schema, so that the data does not decide it."""
        is_by_data = self.kind.is_confluent and self.schema is None and self.schema_id is None
        return not is_by_data

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that decoding adds."""
        facts = (
            ("decoded", "error", "schema_id") if self.kind.is_confluent else ("decoded", "error")
        )
        return tuple(f"{self.column}_{fact}" for fact in facts)

    def argument(self, name: str) -> str:
        """Return the name of one of this column's options."""
        return f"--{self.column}-{name}"


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """The options, as they were given."""

    key_format: str | None = None
    key_schema: str | None = None
    key_message: str | None = None
    key_schema_id: int | None = None
    value_format: str | None = None
    value_schema: str | None = None
    value_message: str | None = None
    value_schema_id: int | None = None
    schemas_topic: str | None = None
    schema_registry: str | None = None


@dataclass(frozen=True, slots=True)
class TableDecodingOptions(DecodingOptions):
    """The options where runs add to a table: whether bytes that are decoded are left out of it,
    whether it gets new columns, None for where nothing pins the schema, and the name of the table
    of what cannot be decoded."""

    drop_decoded_bytes: bool = False
    merge_schema: bool | None = None
    dead_letters: str | None = None

    def evolving(self, requests: Sequence[DecodingRequest]) -> frozenset[str]:
        """Return those of key and value whose columns may change a table."""
        return frozenset(
            request.column
            for request in requests
            if (not request.is_pinned if self.merge_schema is None else self.merge_schema)
        )


def table_decoding_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of TableDecodingOptions, received as `decoding`."""
    drop = click.option(
        "--drop-decoded-bytes",
        is_flag=True,
        help="Leave the bytes of keys and values that are decoded out of the table. What the "
        "schema does not name is then lost.",
    )
    merge = click.option(
        "--merge-schema/--no-merge-schema",
        default=None,
        help="Add new fields of the schema to the table, as nullable columns; without it a run "
        "with other columns than the table's is refused. It is on for confluent formats, unless "
        "a schema or its id is given.",
    )
    dead_letters = click.option(
        "--dead-letters",
        metavar="NAME",
        help="Also write the rows whose key or value cannot be decoded to a table with this name, "
        "each exactly once.",
    )
    return shared.settings_options(
        TableDecodingOptions, "decoding", *_shared_options(), drop, merge, dead_letters
    )(function)


def decoding_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for keys, for values and for the schemas of both, received as `decoding`."""
    return shared.settings_options(DecodingOptions, "decoding", *_shared_options())(function)


def _shared_options() -> list[Callable[..., Any]]:
    options = [option for column in COLUMNS for option in _column_options(column)]
    return [*options, schemas_topic_option, schema_registry_option]


schemas_topic_option = click.option(
    "--schemas-topic",
    metavar="PATH",
    help=f"For confluent formats: the directory of {SCHEMAS_TOPIC}-0, or a log directory with "
    "it; without it PATH... are searched.",
)
schema_registry_option = click.option(
    "--schema-registry",
    metavar="URL|DIR",
    help="For confluent formats: read the schemas from the registry at this URL, or from files "
    f"named by their ids, such as DIR/7.avsc, instead of {SCHEMAS_TOPIC}.",
)


def _column_options(column: str) -> list[Callable[..., Any]]:
    return [
        click.option(
            f"--{column}-format",
            type=click.Choice([kind.value for kind in PayloadKind]),
            help=f"Add {column}_decoded, and {column}_error for what cannot be decoded.",
        ),
        click.option(
            f"--{column}-schema",
            metavar="SCHEMA",
            help="Text or file: for json a Spark DDL or a JSON Schema, for avro an Avro schema, "
            "for protobuf (file only) a descriptor set as protoc --descriptor_set_out writes it.",
        ),
        click.option(
            f"--{column}-message", metavar="NAME", help="For protobuf: the message's full name."
        ),
        click.option(
            f"--{column}-schema-id",
            metavar="ID",
            type=int,
            help="For confluent-avro and confluent-json: read all as this schema (default: the "
            "highest id in the data, deleted ones last).",
        ),
    ]


def decoding_requests(
    options: DecodingOptions, paths: Sequence[str], mode: str, *, has_suppression: bool = False
) -> list[DecodingRequest]:
    """Return the columns to decode of the records below `paths`, which are read in `mode`. With
    `has_suppression` schemas are of use without a column, too (see `suppression_of`).

    Raises OptionError where options contradict each other, are missing, or name a file that is not
    a schema; LogDirError for a `--schemas-topic` that cannot be read.
    """
    requests = [
        request for column in COLUMNS if (request := _request(options, paths, mode, column))
    ]
    given = {"--schemas-topic": options.schemas_topic, "--schema-registry": options.schema_registry}
    if all(given.values()):
        raise ConflictingOptionsError(*given)
    for name, place in given.items():
        if place and not (has_suppression or any(each.kind.is_confluent for each in requests)):
            raise OptionError(name, place, "nothing, unless a format is one of Confluent's")
    for request in requests:
        _refuse_schema(request)
    return requests


def suppression_of(
    file: str | None, options: DecodingOptions, paths: Sequence[str]
) -> Suppression | None:
    """Return what `--suppress` leaves out of the records below `paths`, None without it. Schemas
    are those that decode columns. Raises OptionError, RefusedOptionError for a file or a registry
    that cannot be read."""
    from kafkalog.inspection.erasure.suppression import Suppression

    if file is None:
        return None
    if options.schemas_topic:
        paths = _schemas_topic(options, paths)
    return Suppression.of_file("--suppress", file).decoding(paths, options.schema_registry)


def need_avro(requests: Sequence[DecodingRequest]) -> bool:
    """Return whether the columns need the jar of spark-avro."""
    return any(request.kind.is_avro for request in requests)


def _refuse_schema(request: DecodingRequest) -> None:
    """Raise OptionError for an invalid schema, as far as this shows without Spark."""
    if request.schema is None:
        return
    if request.kind.is_protobuf:
        descriptor_bytes(request)
    elif request.kind.is_avro:
        try:
            read_avro_schema(schema_text(request))
        except SchemaError as error:
            raise unusable_schema(request, error) from error


def unusable_schema(request: DecodingRequest, error: SchemaError) -> OptionError:
    """Return the error for a given schema that cannot be used."""
    allowed = f"a schema that can be used: {error}"
    return OptionError(request.argument("schema"), request.schema, allowed)


def _request(
    options: DecodingOptions, paths: Sequence[str], mode: str, column: str
) -> DecodingRequest | None:
    schema, message, schema_id = (
        getattr(options, f"{column}_{name}") for name in ("schema", "message", "schema_id")
    )
    given = getattr(options, f"{column}_format")
    kind = chosen(f"--{column}-format", PayloadKind, given) if given else None
    # For each option: whether this format takes it, and whether it needs it.
    needs_schema = kind in (PayloadKind.JSON, PayloadKind.AVRO) or (kind and kind.is_protobuf)
    takes_id = kind in (PayloadKind.CONFLUENT_AVRO, PayloadKind.CONFLUENT_JSON) and not schema
    _check(f"--{column}-schema", schema, kind not in (None, PayloadKind.STRING), needs_schema)
    is_protobuf = kind is not None and kind.is_protobuf
    _check(f"--{column}-message", message, is_protobuf, is_protobuf)
    _check(f"--{column}-schema-id", schema_id, takes_id, False)
    if kind is None:
        return None
    if not kind.is_confluent:
        return DecodingRequest(column, kind, schema, message, schema_id, (), mode)
    place = options.schema_registry
    topic = () if place else _schemas_topic(options, paths)
    return DecodingRequest(column, kind, schema, message, schema_id, topic, mode, place)


# What a format needs, by the end of the option's name.
_NEEDED = {
    "schema": "the schema, as text or file: for json the fields, such as 'customer STRING, amount "
    "DOUBLE', or a JSON Schema; for avro the Avro schema; for protobuf the descriptor file",
    "message": "the name of the message in the descriptor file, such as shop.Order",
}


def _check(name: str, value: object, is_taken: bool, is_needed: object) -> None:
    if value is not None and not is_taken:
        raise RefusedOptionError(name, f"of no use with what else is given (see --help on {name})")
    if value is None and is_needed:
        raise OptionError(name, None, _NEEDED[name.rpartition("-")[2]])


def _schemas_topic(options: DecodingOptions, paths: Sequence[str]) -> tuple[str, ...]:
    from kafkalog.inspection.metadata.current_topics import find_logs

    paths = [options.schemas_topic] if options.schemas_topic else paths
    logs = find_logs(paths, strict=False)
    found = [log for log in logs if log.topic == SCHEMAS_TOPIC]
    if not found:
        raise OptionError(
            "--schemas-topic",
            options.schemas_topic,
            f"the directory of {SCHEMAS_TOPIC}-0 or a log directory with it; there is none in "
            + ", ".join(paths),
        )
    return tuple(paths)


def schema_text(request: DecodingRequest) -> str:
    """Return the given schema: the contents of the file, or the argument itself.

    Raises OptionError for a file that is not text.
    """
    given = request.schema or ""
    if not os.path.isfile(given):
        return given
    try:
        return _contents(given).decode("utf-8")
    except UnicodeDecodeError as error:
        raise OptionError(request.argument("schema"), given, "text in UTF-8") from error


def descriptor_bytes(request: DecodingRequest) -> bytes:
    """Return the given descriptor set. Raises OptionError if the file does not exist."""
    given = request.schema or ""
    if not os.path.isfile(given):
        allowed = "a file as protoc --include_imports --descriptor_set_out writes it"
        raise OptionError(request.argument("schema"), given, allowed)
    return _contents(given)


def _contents(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
