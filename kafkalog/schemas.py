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
    """The schema of a view or table as the JSON text that Spark reads."""
    path = resource(*_FOLDER, f"{name}.json")
    if not path.is_file():
        raise SchemaError(f"no table is named {name}; there are {', '.join(table_names())}")
    return path.read_text(encoding="utf-8")


def table_fields(name: str) -> list[dict[str, Any]]:
    """The fields of a view or table in their order: name, type, nullable, metadata."""
    fields: list[dict[str, Any]] = json.loads(table_json(name))["fields"]
    return fields


def table_names() -> list[str]:
    """All views and tables."""
    return sorted(
        path.name.removesuffix(".json")
        for path in resource(*_FOLDER).iterdir()
        if path.name.endswith(".json")
    )
