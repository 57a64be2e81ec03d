"""The columns that a DataFrame needs to be written, and their types."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.types import StructType

from kafkalog.columns.arrays import Constant
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.errors import SchemaError
from kafkalog.spark.source.projection import HEADERS_COLUMN, KAFKA_COLUMNS, whole_schema
from kafkalog.views.options.options import View

_PAYLOADS = ("key", "value")
_PRODUCER = ("producerId", "producerEpoch", "sequence")
WRITTEN_COLUMNS = (*KAFKA_COLUMNS, HEADERS_COLUMN, "timestampMs", "leaderEpoch", *_PRODUCER)


def check_columns(schema: StructType, topic: str | None) -> None:
    """Raise SchemaError where rows of this schema cannot be written as records."""
    needed = ("value", "partition", *(("topic",) if topic is None else ()))
    missing = [name for name in needed if name not in schema.names]
    if missing:
        raise SchemaError(f"no column {', '.join(missing)}: {_described(needed)}")
    known = whole_schema(View.RECORDS)
    for field in schema:
        if field.name not in known.names:
            raise SchemaError(
                f"column {field.name} has no place in a record, drop it; those of view records "
                f"have: {', '.join(WRITTEN_COLUMNS)}"
            )
        types = [known[field.name].dataType.simpleString()]
        types += ["string"] if field.name in _PAYLOADS else []
        if field.dataType.simpleString() not in types:
            raise SchemaError(
                f"column {field.name} is of type {field.dataType.simpleString()}, "
                f"it has to be {' or '.join(types)}"
            )
    given = [name for name in _PRODUCER if name in schema.names]
    if given and len(given) < len(_PRODUCER):
        raise SchemaError(f"{', '.join(_PRODUCER)} belong together, there is {', '.join(given)}")


def _described(needed: tuple[str, ...]) -> str:
    return f"{', '.join(needed)} are needed, others are not"


def written_rows(batches: Iterator[pa.RecordBatch], topic: str | None) -> Iterator[pa.RecordBatch]:
    """Yield the columns that are written, in the types that Spark gives the source's own; with the
    option's topic if there is one."""
    for batch in batches:
        names = [name for name in WRITTEN_COLUMNS if name in batch.schema.names]
        if topic is not None and "topic" in names:
            names.remove("topic")
        wanted = arrow_schema("records", tuple(names))
        columns = [batch.column(name).cast(wanted.field(name).type) for name in names]
        rows = pa.RecordBatch.from_arrays(columns, names=names)
        if topic is not None:
            of_all = Constant(topic, pa.string()).of(batch.num_rows)
            rows = rows.append_column("topic", of_all)
        yield rows
