"""What values in JSON become, by a sample of them: each field has the type that its values have.

Rules: docs/sql.md F1072.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

# Null, in the JSON form of Spark's types: what a sample without any value shows.
_NOTHING = "void"


def sampled_type(sample: Iterable[bytes | None]) -> Any:
    """Return what values become, in the JSON form of Spark's types: text, where the sample has no
    JSON. A field whose values in the sample have types that no type holds is left out."""
    found: Any = _NOTHING
    for value in sample:
        try:
            found = _merged(found, _json_type(json.loads(value or b"null")))
        except (ValueError, RecursionError):
            continue
    known = _known(found)
    return "string" if known is None else known


def _json_type(value: Any) -> Any:
    """Return the type of a value of JSON in the JSON form of Spark's types."""
    if isinstance(value, dict):
        fields = [_field(name, _json_type(each)) for name, each in value.items()]
        return {"type": "struct", "fields": fields}
    if isinstance(value, list):
        element: Any = _NOTHING
        for each in value:
            element = _merged(element, _json_type(each))
        return {"type": "array", "elementType": element, "containsNull": True}
    if value is None:
        return _NOTHING
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "long" if -(2**63) <= value < 2**63 else _MIXED
    return "double" if isinstance(value, float) else "string"


_MIXED = "mixed"


def _field(name: str, spark_type: Any) -> dict[str, Any]:
    return {"name": name, "type": spark_type, "nullable": True, "metadata": {}}


def _merged(ours: Any, theirs: Any) -> Any:
    """Return a type that holds the values of both, _MIXED where there is none."""
    if _NOTHING in (ours, theirs):
        return theirs if ours == _NOTHING else ours
    kinds = [each if isinstance(each, str) else each["type"] for each in (ours, theirs)]
    if kinds == ["struct", "struct"]:
        of_both = {each["name"]: each["type"] for each in ours["fields"]}
        for each in theirs["fields"]:
            name = each["name"]
            of_both[name] = _merged(of_both.get(name, _NOTHING), each["type"])
        return {**ours, "fields": [_field(name, kind) for name, kind in of_both.items()]}
    if kinds == ["array", "array"]:
        return {**ours, "elementType": _merged(ours["elementType"], theirs["elementType"])}
    if set(kinds) == {"long", "double"}:
        return "double"
    return ours if ours == theirs else _MIXED


def _known(spark_type: Any) -> Any:
    """Return a type without the fields of which no value or no one type is known, None if nothing
    is left."""
    if isinstance(spark_type, str):
        return None if spark_type in (_NOTHING, _MIXED) else spark_type
    if spark_type["type"] == "array":
        element = _known(spark_type["elementType"])
        return None if element is None else {**spark_type, "elementType": element}
    fields = [(each["name"], _known(each["type"])) for each in spark_type["fields"]]
    known = [_field(name, kind) for name, kind in fields if kind is not None]
    return {**spark_type, "fields": known} if known else None
