"""The columns that a DataFrame needs to be written, and their types.

They are those of view `records`, or of the tables that exports write, whose names have snake_case.
Rule: docs/writing.md F939.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from kafkalog.columns.arrays import Constant
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.errors import RowError, SchemaError
from kafkalog.lake.decoded_columns import DECODED_COLUMNS
from kafkalog.lake.layout import RECORDS, PartitionBy
from kafkalog.lake.record_rows import NAMES_IN_RECORDS
from kafkalog.schemas import table_fields
from kafkalog.spark.source.projection import whole_schema
from kafkalog.views.options.options import HEADERS_COLUMN, KAFKA_COLUMNS, View

_PAYLOADS = ("key", "value")
_PRODUCER = ("producerId", "producerEpoch", "sequence")
WRITTEN_COLUMNS = (*KAFKA_COLUMNS, HEADERS_COLUMN, "timestampMs", "leaderEpoch", *_PRODUCER)
# Columns of the tables that exports write, with what a record does not hold.
_BESIDE_RECORDS = frozenset(
    {
        *(each["name"] for each in table_fields(RECORDS)),
        *DECODED_COLUMNS,
        *(each.value for each in PartitionBy),
    }
    - NAMES_IN_RECORDS.keys()
    - {"topic", "partition"}
)


def check_columns(schema: StructType, topic: str | None) -> None:
    """Raise SchemaError where rows of this schema cannot be written as records."""
    needed = ("value", "partition", *(("topic",) if topic is None else ()))
    names = _names_in_records(schema.names)
    missing = [name for name in needed if name not in names]
    if missing:
        raise SchemaError(f"no column {', '.join(missing)}: {_described(needed)}")
    known = whole_schema(View.RECORDS)
    for field in schema:
        name = NAMES_IN_RECORDS.get(field.name, field.name)
        if field.name in _BESIDE_RECORDS:
            continue
        if name not in known.names:
            raise SchemaError(
                f"column {field.name} has no place in a record, drop it; those of view records "
                f"have: {', '.join(WRITTEN_COLUMNS)}"
            )
        types = [known[name].dataType.simpleString()]
        types += ["string"] if field.name in _PAYLOADS else []
        if field.dataType.simpleString() not in types:
            raise SchemaError(
                f"column {field.name} is of type {field.dataType.simpleString()}, "
                f"it has to be {' or '.join(types)}"
            )
    given = [name for name in _PRODUCER if name in names]
    if given and len(given) < len(_PRODUCER):
        raise SchemaError(f"{', '.join(_PRODUCER)} belong together, there is {', '.join(given)}")


def _described(needed: tuple[str, ...]) -> str:
    return f"{', '.join(needed)} are needed, others are not"


def written_rows(batches: Iterator[pa.RecordBatch], topic: str | None) -> Iterator[pa.RecordBatch]:
    """Yield the columns that are written, in the types that Spark gives the source's own; with the
    option's topic if there is one."""
    for batch in batches:
        _refuse_lost_bytes(batch)
        found = _names_in_records(batch.schema.names)
        names = [name for name in WRITTEN_COLUMNS if name in found]
        if topic is not None and "topic" in names:
            names.remove("topic")
        wanted = arrow_schema("records", tuple(names))
        columns = [batch.column(found[name]).cast(wanted.field(name).type) for name in names]
        rows = pa.RecordBatch.from_arrays(columns, names=names)
        if topic is not None:
            of_all = Constant(topic, pa.string()).of(batch.num_rows)
            rows = rows.append_column("topic", of_all)
        yield rows


def _names_in_records(names: Iterable[str]) -> dict[str, str]:
    """Return the columns by their names in view `records`. Raises SchemaError where two have one
    name."""
    found: dict[str, str] = {}
    for name in names:
        other = found.setdefault(NAMES_IN_RECORDS.get(name, name), name)
        if other != name:
            raise SchemaError(f"columns {other} and {name} are the same part of a record: drop one")
    return found


def _refuse_lost_bytes(rows: pa.RecordBatch) -> None:
    """Raise RowError for rows whose keys or values are decoded and have no bytes: without them they
    would be written as records without a key, and as deletes."""
    for column in _PAYLOADS:
        if column not in rows.schema.names:
            continue
        for fact in (f"{column}_decoded", f"{column}_schema_id"):
            if fact not in rows.schema.names:
                continue
            is_lost = pc.and_(pc.is_valid(rows.column(fact)), pc.is_null(rows.column(column)))
            if pc.any(is_lost).as_py():
                raise RowError(
                    f"rows have {fact} and no {column}: their bytes were left out "
                    f"(--drop-decoded-bytes, or an earlier kafkalog); write them to the table "
                    "again with --full-refresh, or choose rows that have them"
                )
