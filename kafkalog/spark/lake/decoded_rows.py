"""Keys and values of an export as columns, by Spark's functions.

Rules: docs/ingest.md F537, F538 and F935; reasons: docs/decisions/0030.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog.columns.arrow_types import arrow_fields
from kafkalog.errors import OptionError, SchemaError
from kafkalog.lake.decoded_columns import DECODED_COLUMNS, DecodedColumns, Field
from kafkalog.lake.export_plan import Groups
from kafkalog.lake.layout import RECORDS
from kafkalog.messages.payload_formats import ConfluentFormat, PayloadFormat
from kafkalog.spark.decoding.decoded_frames import schema_ids, with_decoded
from kafkalog.spark.decoding.decoding_requests import DecodingRequest, TableDecodingOptions
from kafkalog.spark.decoding.format_choices import format_choices
from kafkalog.spark.lake.task_files import id_prefixes_of_tasks
from kafkalog.spark.tables import spark_schema
from kafkalog.views.options.options import ReadOptions

_COMMENTS = {
    "decoded": "The {}, decoded; null where it is null or cannot be decoded",
    "error": "Why the {} cannot be decoded, null if nothing is wrong; its bytes are in column {}",
    "schema_id": "Id of the schema that the {} was written with, from Confluent's prefix",
}


class DecodedRows:
    """Decodes the rows of an export. Call `columns` first, which chooses the formats."""

    def __init__(
        self,
        spark: SparkSession,
        requests: Sequence[DecodingRequest],
        options: TableDecodingOptions,
    ) -> None:
        """Raises OptionError for a schema that cannot be used, and for a jar that is missing."""
        self._spark = spark
        self._requests = {request.column: request for request in requests}
        self._options = options
        self._choices = format_choices(spark, requests)
        self._formats: dict[str, PayloadFormat] = {}

    def columns(self, options: ReadOptions, groups: Groups) -> DecodedColumns:
        """Return the columns that decoding adds. For Confluent's formats this reads the schema ids
        of all records.

        Raises OptionError where no id has a schema that can be used, and for a type that files
        cannot hold.
        """
        prefixes = id_prefixes_of_tasks(self._spark, options, groups)
        self._formats = {
            column: choice(schema_ids(prefixes, column)) for column, choice in self._choices.items()
        }
        rows = self._decoded(self._spark.createDataFrame([], spark_schema(RECORDS)))
        fields = tuple(
            _field(field.jsonValue()) for field in rows.schema if field.name in DECODED_COLUMNS
        )
        for field in fields:
            self._refuse_type(field)
        return DecodedColumns(
            fields,
            self._options.evolving([*self._requests.values()]),
            {column: self._read_as(column) for column in self._formats},
        )

    def rows(self, records: DataFrame) -> DataFrame:
        """Return records with the decoded columns, and without the bytes of what is decoded if that
        was requested."""
        rows = self._decoded(records)
        if not self._options.drop_decoded_bytes:
            return rows
        bytes_left = {
            column: F.when(F.col(f"{column}_error").isNotNull(), F.col(column))
            for column in self._formats
        }
        return rows.withColumns(bytes_left)

    def _refuse_type(self, field: Field) -> None:
        try:
            arrow_fields([field])
        except SchemaError as error:
            request = self._requests[field["name"].split("_", 1)[0]]
            allowed = f"a schema whose values a table can hold: {error}"
            raise OptionError(request.argument("schema"), request.schema, allowed) from error

    def _read_as(self, column: str) -> str:
        """Return with which schema a run reads a column, for messages."""
        found, request = self._formats[column], self._requests[column]
        if not isinstance(found, ConfluentFormat):
            return ""
        ids = sorted({use.schema_id for use in found.uses})
        several = ("schema id " if len(ids) == 1 else "schema ids ") + ", ".join(map(str, ids))
        return f"this run reads {several} as {found.read_as or request.argument('schema')}"

    def _decoded(self, records: DataFrame) -> DataFrame:
        for column, payload_format in self._formats.items():
            records = with_decoded(records, column, payload_format)
        return records


def _field(field: dict[str, Any]) -> Field:
    column, fact = field["name"].split("_", 1)
    comment = _COMMENTS[fact].format(column, column)
    return {
        "name": field["name"],
        "type": _nullable(field["type"]),
        "nullable": True,
        "metadata": {"comment": comment},
    }


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
