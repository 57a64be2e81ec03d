"""Which values of configs each release of Kafka takes, by Kafka's own definitions.

Rule: docs/format.md F1013. The table is schemas/releases/configs.json. What a validator checks in
code alone, such as whether a class exists, is not known here, and any value passes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kafkalog.coordination.metadata.releases import (
    is_at_least,
    nearest_release,
    read_releases,
    release_table,
)

_INTEGERS = {"short": 15, "int": 31, "long": 63}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_BOOLEANS = ("true", "false")
_THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_THROTTLED_VALUE = re.compile(r"\*|((\d+:\d+)?(\s*,\s*(\d+:\d+)?)*)")
# As validators of levels print what they take.
_RANGE_OR = re.compile(r"\[(-?\d+),\.\.\.,(-?\d+)\] or (-?\d+)")


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    """What a release takes for a config: `type` is Kafka's, `values` are all that there are, in
    lists those of an element; `or_value` is allowed outside of the range. `is_required` configs
    have no default."""

    name: str
    type: str
    least: float | None = None
    most: float | None = None
    or_value: int | None = None
    values: tuple[str, ...] = ()
    has_any_case: bool = False
    is_required: bool = False

    @property
    def limits(self) -> str:
        """The range or the list of values, in words; empty where there is neither."""
        if self.values:
            return "one of " + ", ".join(self.values)
        bounds = ((self.least, "at least"), (self.most, "at most"))
        return ", ".join(f"{words} {bound}" for bound, words in bounds if bound is not None)

    def refusal(self, value: str) -> str | None:
        """Return why the release refuses a value, None if it takes it."""
        text = value.strip()
        if self.type in _INTEGERS or self.type == "double":
            return self._number_refusal(text)
        if self.type == "boolean" and text.lower() not in _BOOLEANS:
            return f"{value!r} is neither true nor false"
        if self.name in _THROTTLED and not _THROTTLED_VALUE.fullmatch(text):
            return f"{value!r} is neither * nor a list of PARTITION:BROKER"
        given = _elements(text) if self.type == "list" else [text]
        wrong = next((each for each in given if self.values and not self._is_value(each)), None)
        return None if wrong is None else f"{wrong!r} is none of {', '.join(self.values)}"

    def _is_value(self, text: str) -> bool:
        if self.has_any_case:
            return text.upper() in map(str.upper, self.values)
        return text in self.values

    def _number_refusal(self, text: str) -> str | None:
        number = _number(text, self.type)
        if number is None:
            return f"{text!r} is not a number of type {self.type}"
        if number == self.or_value:
            return None
        if self.least is not None and number < self.least:
            return (
                f"{text} is below {self.least:g}" if self.type == "double" else _below(self, text)
            )
        if self.most is not None and number > self.most:
            return f"{text} is above {self.most}"
        return None


def _below(definition: ConfigDefinition, text: str) -> str:
    return f"{text} is below {definition.least}, the least that is allowed"


def _elements(text: str) -> list[str]:
    return re.split(r"\s*,\s*", text) if text else []


def _number(text: str, type_name: str) -> float | int | None:
    """Return a number as Java parses it, None for what it does not."""
    if type_name == "double":
        try:
            found = float(text)
        except ValueError:
            return None
        return None if math.isnan(found) else found
    if _INTEGER.fullmatch(text) is None:
        return None
    number, bits = int(text), _INTEGERS[type_name]
    return number if -(2**bits) <= number < 2**bits else None


@cache
def config_definitions(of: str, release: str) -> Mapping[str, ConfigDefinition]:
    """Return the configs that a release knows, by name; `of` is topic or broker. Of a release that
    the table does not have, those of the nearest."""
    release = nearest_release(release)
    return {
        row["name"]: _definition(row)
        for row in release_table("configs")[of]
        if is_at_least(release, row["first"]) and is_at_least(row["last"], release)
    }


def _definition(row: Mapping[str, Any]) -> ConfigDefinition:
    least, most, other = row.get("least"), row.get("most"), None
    match = _RANGE_OR.fullmatch(row.get("text", ""))
    if match is not None:
        least, most, other = map(int, match.groups())
    return ConfigDefinition(
        row["name"],
        row["type"],
        least,
        most,
        other,
        tuple(row.get("values", ())),
        row.get("any_case", False),
        row.get("required", False),
    )


def releases_with(of: str, name: str) -> list[str]:
    """Return the releases that know a config, the earliest first; none for a name that none of them
    knows, such as one of a plug-in."""
    return [each for each in read_releases() if name in config_definitions(of, each)]
