"""Keys and values of an export as columns, by Spark's functions.

Rules: docs/ingest.md F537, F538 and F935; reasons: docs/decisions/0030.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog.lake.decoded_columns import DECODED_COLUMNS, DecodedColumns
from kafkalog.lake.decoding.decoded_fields import decoded_field, read_as, refuse_type
from kafkalog.lake.decoding.decoding_requests import DecodingRequest, TableDecodingOptions
from kafkalog.lake.export_plan import Groups
from kafkalog.lake.layout import RECORDS
from kafkalog.messages.payload_formats import PayloadFormat
from kafkalog.spark.decoding.decoded_frames import schema_ids, with_decoded
from kafkalog.spark.decoding.format_choices import format_choices
from kafkalog.spark.lake.task_files import id_prefixes_of_tasks
from kafkalog.spark.tables import spark_schema
from kafkalog.views.options.options import ReadOptions


class DecodedRows:
    """Decodes the rows of an export. Call `columns` first, which chooses the formats."""

    def __init__(
        self,
        spark: SparkSession,
        requests: Sequence[DecodingRequest],
        options: TableDecodingOptions,
        *,
        is_for_faults: bool = False,
    ) -> None:
        """`is_for_faults` leaves out the rows in which everything is decoded. Raises OptionError
        for a schema that cannot be used, and for a jar that is missing."""
        self._spark = spark
        self._requests = {request.column: request for request in requests}
        self._options = options
        self._is_for_faults = is_for_faults
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
            decoded_field(field.name, field.jsonValue()["type"])
            for field in rows.schema
            if field.name in DECODED_COLUMNS
        )
        for field in fields:
            refuse_type(self._requests, field)
        return DecodedColumns(
            fields,
            self._options.evolving([*self._requests.values()]),
            {
                column: read_as(self._requests[column], found)
                for column, found in self._formats.items()
            },
        )

    def rows(self, records: DataFrame) -> DataFrame:
        """Return records with the decoded columns, and without the bytes of what is decoded if that
        was requested. For faults these are the rows with an error."""
        rows = self._decoded(records)
        if self._is_for_faults:
            errors = (F.col(f"{column}_error").isNotNull() for column in self._formats)
            rows = rows.where(reduce(or_, errors))
        if not self._options.drop_decoded_bytes:
            return rows
        bytes_left = {
            column: F.when(F.col(f"{column}_error").isNotNull(), F.col(column))
            for column in self._formats
        }
        return rows.withColumns(bytes_left)

    def _decoded(self, records: DataFrame) -> DataFrame:
        for column, payload_format in self._formats.items():
            records = with_decoded(records, column, payload_format)
        return records
