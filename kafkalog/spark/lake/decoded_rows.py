"""Keys and values of an export as columns, by Spark's functions.

Rules: docs/ingest.md F537 and F538; reasons: docs/decisions/0030.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog.lake.decoded_columns import DECODED_COLUMNS, Field
from kafkalog.lake.export_plan import Groups
from kafkalog.lake.layout import RECORDS
from kafkalog.messages.payload_formats import PayloadFormat
from kafkalog.spark.decoding.decoded_frames import FormatChoice, schema_ids, with_decoded
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

    def __init__(self, spark: SparkSession, choices: Mapping[str, FormatChoice]) -> None:
        self._spark = spark
        self._choices = choices
        self._formats: dict[str, PayloadFormat] = {}

    def columns(self, options: ReadOptions, groups: Groups) -> tuple[Field, ...]:
        """Return the columns that decoding adds. For Confluent's formats this reads the schema ids
        of all records.

        Raises OptionError where no id has a schema that can be used, SchemaError for a type that
        files cannot hold.
        """
        prefixes = id_prefixes_of_tasks(self._spark, options, groups)
        self._formats = {
            column: choice(schema_ids(prefixes, column)) for column, choice in self._choices.items()
        }
        rows = self._decoded(self._spark.createDataFrame([], spark_schema(RECORDS)))
        return tuple(
            _field(field.jsonValue()) for field in rows.schema if field.name in DECODED_COLUMNS
        )

    def rows(self, records: DataFrame) -> DataFrame:
        """Return records with the decoded columns. Of a key or value that is decoded only these
        stay; its bytes are null."""
        rows = self._decoded(records)
        bytes_left = {
            column: F.when(F.col(f"{column}_error").isNotNull(), F.col(column))
            for column in self._formats
        }
        return rows.withColumns(bytes_left)

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
