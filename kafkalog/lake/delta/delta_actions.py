"""What a commit of Delta says of a file: action `add`, with statistics by which readers skip files.

The fields are those of Delta's protocol (PROTOCOL.md, "Add File and Remove File", "Per-file
Statistics").
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote

from kafkalog.lake.layout import RECORDS
from kafkalog.lake.manifest_rows import TABLE as MANIFEST
from kafkalog.lake.written_file import Bound, WrittenFile
from kafkalog.schemas import table_fields

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Of times that a text with four digits for the year can hold.
_FIRST_US = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_LAST_US = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_TIMES = frozenset(
    field["name"]
    for table in (RECORDS, MANIFEST)
    for field in table_fields(table)
    if field["type"] == "timestamp"
)


def add_action(file: WrittenFile, written_at_ms: int) -> str:
    """Return the action that makes a file part of the table, as JSON."""
    action = {
        "path": _in_log(file.path),
        "partitionValues": dict(file.partition_values),
        "size": file.size,
        "modificationTime": written_at_ms,
        "dataChange": True,
        "stats": _statistics(file),
    }
    return json.dumps({"add": action})


def remove_action(file: WrittenFile, removed_at_ms: int) -> str:
    """Return the action that takes a file out of the table, as JSON."""
    action = {
        "path": _in_log(file.path),
        "deletionTimestamp": removed_at_ms,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": dict(file.partition_values),
        "size": file.size,
    }
    return json.dumps({"remove": action})


def file_in_log(path: str, size: int, statistics: str | None) -> WrittenFile:
    """Return a file of a table without partitions as its action `add` has it, times left out."""
    found = json.loads(statistics or "{}")
    least, greatest = (found.get(name, {}) for name in ("minValues", "maxValues"))
    bounds = [{name: each[name] for name in each.keys() - _TIMES} for each in (least, greatest)]
    return WrittenFile(
        path=unquote(path),
        size=size,
        rows=found.get("numRecords", 0),
        partition_values={},
        least=bounds[0],
        greatest=bounds[1],
        null_counts=found.get("nullCount", {}),
        rows_of={},
    )


def metadata_action(schema: str, created_ms: int) -> str:
    """Return the action that makes a new table with a schema, Spark's JSON, as JSON."""
    action = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": {},
        "createdTime": created_ms,
    }
    return json.dumps({"metaData": action})


def transaction_action(writer: str, version: int) -> str:
    """Return the action that keeps how far a writer has come, as JSON."""
    return json.dumps({"txn": {"appId": writer, "version": version}})


def _in_log(path: str) -> str:
    """Return a relative path as a URI reference: what its characters would mean is encoded."""
    return quote(path, safe="/=")


def _statistics(file: WrittenFile) -> str:
    return json.dumps(
        {
            "numRecords": file.rows,
            "minValues": _bounds(file.least, is_least=True),
            "maxValues": _bounds(file.greatest, is_least=False),
            "nullCount": dict(file.null_counts),
        }
    )


def _bounds(bounds: Mapping[str, Bound], *, is_least: bool) -> dict[str, Bound]:
    found = dict(bounds)
    for name in _TIMES & found.keys():
        text = _time_text(int(found[name]), is_least=is_least)
        if text is None:
            del found[name]
        else:
            found[name] = text
    return found


def _time_text(time_us: int, *, is_least: bool) -> str | None:
    """Return a time in milliseconds, None where four digits are too few for its year.

    Delta's writer cuts microseconds off, and its reader adds a millisecond to the maximum. Others
    take it as it is: rounded up it is right for both.
    """
    if not _FIRST_US <= time_us < _LAST_US:
        return None
    time_ms = time_us // 1000 if is_least else -(-time_us // 1000)
    text = (_EPOCH + timedelta(milliseconds=time_ms)).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
