"""Values at a path of a decoded value, such as $.customer.id or $.items[*].owner.

Rule: docs/erasure.md F1107.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from kafkalog.errors import OptionError

_STEP = re.compile(
    r"""\.\.(?P<anywhere>[^.\[\]]+)|\.(?P<name>[^.\[\]]+)|\[(?P<index>-?[0-9]{1,9})\]"""
    r"""|\[\*\]|\[(?P<quote>['"])(?P<quoted>(?:(?!(?P=quote)).)+)(?P=quote)\]"""
)
_ALL = object()


@dataclass(frozen=True, slots=True)
class _Anywhere:
    """A field of this name at any depth."""

    name: str


@dataclass(frozen=True, slots=True)
class ValuePath:
    """A path: $ and steps, which are fields (.name, ['name']), elements ([0], [*]) or fields at any
    depth (..name)."""

    steps: tuple[object, ...]

    @classmethod
    def of(cls, text: str) -> ValuePath:
        """Read a path. Raises OptionError."""
        steps: list[object] = []
        position = 1
        while text.startswith("$") and position < len(text):
            match = _STEP.match(text, position)
            if match is None:
                break
            if match["anywhere"]:
                steps.append(_Anywhere(match["anywhere"]))
            elif match["index"]:
                steps.append(int(match["index"]))
            else:
                steps.append(match["name"] or match["quoted"] or _ALL)
            position = match.end()
        if position != len(text) or not text.startswith("$"):
            raise OptionError("--value-path", text, "a path such as $.customer.id, $.items[*].owner"
                              ", $..email, or $ for the whole")  # fmt: skip
        return cls(tuple(steps))

    def values(self, decoded: Any) -> Iterator[Any]:
        """Yield what is at the path in a decoded value."""
        found = [decoded]
        for step in self.steps:
            found = [inner for each in found for inner in _inner(each, step)]
        yield from found


def _inner(value: Any, step: object) -> Iterator[Any]:
    if isinstance(step, _Anywhere):
        yield from _anywhere(value, step.name)
    elif step is _ALL:
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict):
            yield from value.values()
    elif isinstance(step, int):
        if isinstance(value, list) and -len(value) <= step < len(value):
            yield value[step]
    elif isinstance(value, dict) and step in value:
        yield value[step]


def _anywhere(value: Any, name: str) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if name in each:
                yield each[name]
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def decoded_value(data: bytes, decoders: Sequence[Callable[[bytes], Any]]) -> tuple[Any] | None:
    """Return the value of bytes, as JSON or by the first decoder that takes them, in a tuple of
    one; None where nothing decodes them."""
    readers: tuple[Callable[[bytes], Any], ...] = (json.loads, *decoders)
    for read in readers:
        try:
            return (read(data),)
        except (ValueError, RecursionError):
            continue
    return None


def is_value(found: Any, text: str) -> bool:
    """Return whether what is at a path is this value: the text itself, or a number, true, false or
    null that is written so."""
    if isinstance(found, str):
        return found == text
    if isinstance(found, bytes):
        return found == text.encode()
    if found is None or isinstance(found, bool):
        return json.dumps(found) == text
    if isinstance(found, int | float | Decimal):
        number = number_of(text)
        return number is not None and Decimal(str(found)) == number
    return False


def number_of(text: str) -> Decimal | None:
    """Return the number that a text is, None for any other text."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
