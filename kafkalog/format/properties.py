"""Java's properties files, as `meta.properties` is one. Rule: docs/format.md F82."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# What Java puts a backslash before when it writes keys and values.
_TO_ESCAPE = re.compile(r"[\\=:#!]|^ ")


@dataclass(frozen=True, slots=True)
class Properties:
    """Keys and values in the order of the file, and the comment lines at its head."""

    values: dict[str, str] = field(default_factory=dict)
    comments: tuple[str, ...] = ()


def read_properties(text: str) -> Properties:
    """The keys and values of a file; a line without a separator is left out."""
    values: dict[str, str] = {}
    comments: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith(("#", "!")):
            comments.append(line)
            continue
        key, separator, value = _split(line)
        if separator:
            values[_unescaped(key.strip())] = _unescaped(value.strip())
    return Properties(values, tuple(comments))


def write_properties(values: Mapping[str, str], comments: Sequence[str] = ()) -> str:
    """The text of a file as Java writes it, keys in the order given."""
    lines = [f"{_escaped(key)}={_escaped(value)}" for key, value in values.items()]
    return "".join(f"{line}\n" for line in (*comments, *lines))


def _split(line: str) -> tuple[str, str, str]:
    match = re.match(r"((?:\\.|[^\\=:])*)([=:])(.*)", line)
    return match.group(1, 2, 3) if match else (line, "", "")  # type: ignore[return-value]


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _CONTROL.get(code, code)

    return _ESCAPED.sub(character, text)


def _escaped(text: str) -> str:
    return _TO_ESCAPE.sub(lambda match: "\\" + match[0], text)
