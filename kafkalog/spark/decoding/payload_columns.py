"""A payload as a column, by its format: what Spark makes of it, the value, and what is wrong.

Spark's readers of JSON and Avro stop where the first value ends, and a fault inside gives them a
row of nulls. Here a payload counts only as a whole: it is read inside a frame that does not close
otherwise. Rules: docs/format.md F291, F292.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafkalog.messages.payload_formats import (
    AvroFormat,
    JsonFormat,
    ProtobufFormat,
    SchemaFormat,
    TextFormat,
)

# Added after Avro data, which does not mark its end: a payload that is shorter or longer than its
# schema says takes some of these bytes or leaves some of its own. No part of them repeats.
_END = bytes.fromhex("9b1d5ea7c3f04826")
_DECODED, _REST = "decoded", "rest"


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
