"""The schemas of all views and tables: data files, one StructType in Spark's JSON form each."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from kafkalog.errors import SchemaError


def _tables() -> Traversable:
    packaged = files("kafkalog") / "schemas" / "tables"
    # In a wheel the schemas are part of the package, in the source tree they stand beside it.
    return packaged if packaged.is_dir() else Path(__file__).parents[1] / "schemas" / "tables"


@cache
def table_json(name: str) -> str:
    """The schema of a view or table as the JSON text that Spark reads."""
    path = _tables().joinpath(f"{name}.json")
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
        for path in _tables().iterdir()
        if path.name.endswith(".json")
    )
