"""The columns that decoding adds to a table, whoever decodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkalog.columns.arrow_types import arrow_fields
from kafkalog.errors import OptionError, SchemaError
from kafkalog.lake.decoded_columns import Field
from kafkalog.lake.decoding.decoding_requests import DecodingRequest
from kafkalog.messages.payload_formats import ConfluentFormat, PayloadFormat

_COMMENTS = {
    "decoded": "The {}, decoded; null where it is null or cannot be decoded",
    "error": "Why the {} cannot be decoded, null if nothing is wrong; its bytes are in column {}",
    "schema_id": "Id of the schema that the {} was written with, from Confluent's prefix",
}


def decoded_field(name: str, spark_type: Any) -> Field:
    """Return a column, such as value_decoded, with a comment; its parts can all be null."""
    column, fact = name.split("_", 1)
    return {
        "name": name,
        "type": _nullable(spark_type),
        "nullable": True,
        "metadata": {"comment": _COMMENTS[fact].format(column, column)},
    }


def refuse_type(requests: Mapping[str, DecodingRequest], field: Field) -> None:
    """Raise OptionError for a column of a type that files cannot hold."""
    try:
        arrow_fields([field])
    except SchemaError as error:
        request = requests[field["name"].split("_", 1)[0]]
        allowed = f"a schema whose values a table can hold: {error}"
        raise OptionError(request.argument("schema"), request.schema, allowed) from error


def read_as(request: DecodingRequest, found: PayloadFormat) -> str:
    """Return with which schema a run reads a column, for messages."""
    if not isinstance(found, ConfluentFormat):
        return ""
    ids = sorted({use.schema_id for use in found.uses})
    several = ("schema id " if len(ids) == 1 else "schema ids ") + ", ".join(map(str, ids))
    return f"this run reads {several} as {found.read_as or request.argument('schema')}"


def _nullable(spark_type: Any) -> Any:
    """Return a type whose parts can all be null: engines differ in what they make of others."""
    if isinstance(spark_type, str):
        return spark_type
    parts = {
        name: _nullable(spark_type[name])
        for name in ("elementType", "keyType", "valueType")
        if name in spark_type
    }
    flags = {name: True for name in ("containsNull", "valueContainsNull") if name in spark_type}
    if "fields" in spark_type:
        parts["fields"] = [
            {
                "name": each["name"],
                "type": _nullable(each["type"]),
                "nullable": True,
                "metadata": {},
            }
            for each in spark_type["fields"]
        ]
    return {**spark_type, **parts, **flags}
