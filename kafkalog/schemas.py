"""The schemas of all views and tables: data files, one StructType in Spark's JSON form each."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from kafkalog.errors import SchemaError
from kafkalog.resources import resource

_FOLDER = ("schemas", "tables")


@cache
def table_json(name: str) -> str:
    """Return the schema of a view or table as JSON text for Spark."""
    path = resource(*_FOLDER, f"{name}.json")
    if not path.is_file():
        raise SchemaError(f"unknown table {name}; the tables are {', '.join(table_names())}")
    return path.read_text(encoding="utf-8")


def table_fields(name: str) -> list[dict[str, Any]]:
    """Return the fields of a view or table in order: name, type, nullable, metadata."""
    fields: list[dict[str, Any]] = json.loads(table_json(name))["fields"]
    return fields


def table_names() -> list[str]:
    """Return the names of all views and tables."""
    return sorted(
        path.name.removesuffix(".json")
        for path in resource(*_FOLDER).iterdir()
        if path.name.endswith(".json")
    )
