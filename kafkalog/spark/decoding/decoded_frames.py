"""Keys and values as columns: text, JSON, Avro or Protobuf, with or without Confluent's schema ids.

A payload that is not what it is said to be gives null and a reason, never a part of a value.
Spark's readers of JSON and Avro stop where the first value ends, and a fault inside gives them a
row of nulls. Here a payload counts only as a whole: it is read inside a frame that does not close
otherwise. Rules: docs/format.md F285, F286, F291, F292.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafkalog.messages.payload_formats import (
    ID_PREFIX_BYTES,
    SCHEMA_ID_BYTES,
    AvroFormat,
    ConfluentFormat,
    JsonFormat,
    Magic,
    PayloadFormat,
    ProtobufFormat,
    SchemaFormat,
    SchemaUse,
    TextFormat,
)

_HEADERS = "headers"


# Chooses a column's format when it is given the schema ids in the data (`schema_ids`).
FormatChoice = Callable[[DataFrame], PayloadFormat]
# Added after Avro data, which does not mark its end: a payload that is shorter or longer than its
# schema says takes some of these bytes or leaves some of its own. No part of them repeats.
_END = bytes.fromhex("9b1d5ea7c3f04826")
_DECODED, _REST = "decoded", "rest"


def with_decoded_columns(frame: DataFrame, choices: Mapping[str, FormatChoice]) -> DataFrame:
    """Return the frame with what `with_decoded` adds for each column that has a choice."""
    for column, choice in choices.items():
        frame = with_decoded(frame, column, choice(schema_ids(frame, column)))
    return frame


def with_decoded(frame: DataFrame, column: str, payload_format: PayloadFormat) -> DataFrame:
    """Return the frame with `<column>_decoded` and `<column>_error`, followed by
    `<column>_schema_id` if the format is one of Confluent's.

    Of a null payload all are null. A decoded value may be null by itself (JSON has null, Avro as
    well); `<column>_error` is null then. Column `headers` is looked at where the frame has it.
    """
    payload, parsed = F.col(column), F.col(f"{column}_parsed")
    if isinstance(payload_format, ConfluentFormat):
        inner = payload_format.uses[0].format
        whole = _parsed_by_id(payload_format, payload)
        fault = F.coalesce(
            _header_fault(frame, column),
            _prefix_fault(payload),
            _with_id(payload, _id_fault(payload_format, payload)),
            _with_id(payload, payload_fault(inner, parsed)),
        )
        ids = {f"{column}_schema_id": schema_id_of(payload)}
    else:
        inner, ids = payload_format, {}
        whole = parsed_payload(inner, payload)
        fault = payload_fault(inner, parsed)
    error = F.col(f"{column}_error")
    added = {f"{column}_decoded": F.when(error.isNull(), decoded_value(inner, parsed)), **ids}
    framed = frame.withColumn(f"{column}_parsed", whole)
    # The fault first, for the value asks for it; then both in the order promised.
    judged = framed.withColumn(f"{column}_error", F.when(payload.isNotNull(), fault))
    decoded = judged.withColumns(added)
    names = (f"{column}_decoded", f"{column}_error", *ids)
    return decoded.select(*frame.columns, *names)


def schema_ids(frame: DataFrame, column: str) -> DataFrame:
    """Return the schema ids before the payloads in a column, each once, as `schema_id`."""
    ids = frame.select(schema_id_of(F.col(column)).alias("schema_id"))
    return ids.where(F.col("schema_id").isNotNull()).distinct()


def schema_id_of(payload: Column) -> Column:
    """Return the schema id in Confluent's prefix; null where there is none."""
    has_id = (F.length(payload) >= ID_PREFIX_BYTES) & (_first_byte(payload) == Magic.SCHEMA_ID)
    unsigned = F.conv(F.hex(F.substring(payload, 2, SCHEMA_ID_BYTES)), 16, 10).cast("long")
    signed = F.when(unsigned < 2**31, unsigned).otherwise(unsigned - 2**32)
    return F.when(has_id, signed.cast("int"))


def _parsed_by_id(confluent: ConfluentFormat, payload: Column) -> Column:
    values = [
        F.when(_is_use(payload, use), parsed_payload(use.format, _behind(payload, use.opening)))
        for use in confluent.uses
    ]
    return F.coalesce(*values)


def _is_use(payload: Column, use: SchemaUse) -> Column:
    is_id = schema_id_of(payload) == use.schema_id
    opening = F.substring(payload, ID_PREFIX_BYTES + 1, len(use.opening))
    return is_id & (opening == F.lit(use.opening))


def _behind(payload: Column, opening: bytes) -> Column:
    return F.substring(payload, ID_PREFIX_BYTES + len(opening) + 1, 2**31 - 1)


def _prefix_fault(payload: Column) -> Column:
    first = F.hex(F.substring(payload, 1, 1))
    return (
        F.when(F.length(payload) == 0, F.lit("empty, without a schema id"))
        .when(
            _first_byte(payload) == Magic.SCHEMA_GUID,
            F.lit("a schema's GUID in place of its id, which is not read yet"),
        )
        .when(
            _first_byte(payload) != Magic.SCHEMA_ID,
            F.concat(F.lit("not a schema id: the first byte is "), first, F.lit(", not 00")),
        )
        .when(
            F.length(payload) < ID_PREFIX_BYTES,
            F.concat(F.length(payload), F.lit(" bytes, shorter than a schema id's prefix")),
        )
    )


def _id_fault(confluent: ConfluentFormat, payload: Column) -> Column:
    schema_id = schema_id_of(payload)
    known = {use.schema_id for use in confluent.uses}
    is_read = reduce(Column.__or__, (_is_use(payload, use) for use in confluent.uses))
    fault = F.when(is_read, F.lit(None).cast("string"))
    for refused, reason in sorted(confluent.refused.items()):
        fault = fault.when(schema_id == refused, F.lit(reason))
    fault = fault.when(~schema_id.isin(known), F.lit("its schema is not in _schemas"))
    return fault.otherwise(F.lit("its message indexes lead to another message"))


def _with_id(payload: Column, fault: Column) -> Column:
    return F.concat(F.lit("schema id "), schema_id_of(payload), F.lit(": "), fault)


def _header_fault(frame: DataFrame, column: str) -> Column:
    if _HEADERS not in frame.columns:
        return F.lit(None).cast("string")
    name = f"__{column}_schema_id"
    is_named = F.exists(F.col(_HEADERS), lambda header: header["key"] == name)
    reason = F.lit(f"its schema's GUID is in header {name}, which is not read yet")
    return F.when(is_named, reason)


def _first_byte(payload: Column) -> Column:
    return F.conv(F.hex(F.substring(payload, 1, 1)), 16, 10).cast("int")


def parsed_payload(schema_format: SchemaFormat, payload: Column) -> Column:
    """Return what Spark makes of a payload, for the two functions below: to be computed once per
    row."""
    match schema_format:
        case TextFormat():
            return _text(payload)
        case JsonFormat(type_json):
            return _parsed_json(type_json, _text(payload))
        case AvroFormat(_, _, is_raw=True):
            return F.struct(payload.alias(_DECODED), F.lit(_END).alias(_REST))
        case AvroFormat(writer, reader):
            options = _map_of({"mode": "PERMISSIVE", "avroSchema": _framed_avro(reader)})
            data, schema = F.concat(payload, F.lit(_END)), F.lit(_framed_avro(writer))
            return F.call_function("from_avro", data, schema, options)
        case ProtobufFormat(message, descriptor):
            options = _map_of({"mode": "PERMISSIVE", "upcast.unsigned.ints": "true"})
            arguments = F.lit(message), F.lit(descriptor), options
            return F.call_function("from_protobuf", payload, *arguments)


def decoded_value(schema_format: SchemaFormat, parsed: Column) -> Column:
    """Return the value of a payload in which nothing is wrong."""
    match schema_format:
        case JsonFormat() | AvroFormat():
            return parsed[_DECODED]
        case TextFormat() | ProtobufFormat():
            return parsed


def payload_fault(schema_format: SchemaFormat, parsed: Column) -> Column:
    """Return what is wrong with a payload that is not null; null if nothing is."""
    match schema_format:
        case TextFormat():
            return F.when(parsed.isNull(), F.lit("not UTF-8"))
        case JsonFormat():
            return F.when(parsed.isNull(), F.lit("not JSON")).when(
                parsed[_REST].isNotNull(), F.lit("JSON, but not of the schema")
            )
        case AvroFormat():
            is_whole = F.coalesce(parsed[_REST] == F.lit(_END), F.lit(False))
            return F.when(~is_whole, F.lit("not Avro of the schema"))
        case ProtobufFormat(message):
            return F.when(parsed.isNull(), F.lit(f"not Protobuf of message {message}"))


def _text(payload: Column) -> Column:
    return F.try_validate_utf8(payload.cast("string"))


def _parsed_json(type_json: str, text: Column) -> Column:
    # As the only member of an array, and as a member of an object, a text is one whole value.
    is_one_value = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1
    framed = F.concat(F.lit(f'{{"{_DECODED}":'), text, F.lit("}"))
    fields: list[object] = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in ((_DECODED, json.loads(type_json)), (_REST, "string"))
    ]
    options = {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _REST,
        "allowSingleQuotes": "false",
        "allowNonNumericNumbers": "false",
    }
    schema = StructType.fromJson({"type": "struct", "fields": fields})
    return F.when(is_one_value, F.from_json(framed, schema, options))


def _framed_avro(schema: str) -> str:
    # Without a namespace, which the schema's names would take over.
    end = {"type": "fixed", "name": "kafkalog_end", "size": len(_END)}
    fields = [{"name": _DECODED, "type": json.loads(schema)}, {"name": _REST, "type": end}]
    return json.dumps({"type": "record", "name": "kafkalog_payload", "fields": fields})


def _map_of(options: Mapping[str, str]) -> Column:
    return F.create_map(*(F.lit(text) for pair in options.items() for text in pair))
