"""Java's properties files, as `meta.properties` is one. Rule: docs/format.md F82."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
# Possessive: for each repetition that could be taken back, a match keeps a hundred bytes.
_KEY_AND_VALUE = re.compile(r"[ \t\f]*+((?:[^\\=: \t\f]++|\\.)++)([ \t\f]*[=:]|[ \t\f]+)(.*)")
_BAD_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# What Java puts a backslash before when it writes keys and values.
_TO_ESCAPE = re.compile(r"[\\=:#!\t\n\r\f]|^ ")
_TO_ESCAPE_IN_KEYS = re.compile(r"[\\=:#!\t\n\r\f ]")
_LETTERS = {control: letter for letter, control in _CONTROL.items()}


@dataclass(frozen=True, slots=True)
class Properties:
    """Keys and values in the order of the file, and the comment lines at its head."""

    values: dict[str, str] = field(default_factory=dict)
    comments: tuple[str, ...] = ()


def read_properties(text: str, *, is_exact: bool = False) -> Properties:
    """Return the keys and values of a file, without lines that have no separator.

    As in Java, a separator is `=`, `:` or white space, and a line that ends in a backslash
    continues in the next. With `is_exact` values keep the white space at their end, as in Java;
    those who read settings of Kafka do not look at it.
    """
    values: dict[str, str] = {}
    comments: list[str] = []
    for line in _whole_lines(text):
        if line.lstrip().startswith(("#", "!")):
            comments.append(line)
            continue
        key, separator, value = _split(line)
        if separator:
            stripped = value.lstrip() if is_exact else value.strip()
            values[_unescaped(key.strip())] = _unescaped(stripped)
    return Properties(values, tuple(comments))


def has_bad_escape(text: str) -> bool:
    """Return whether Java refuses a file: a `\\u` without four hexadecimal digits."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(("#", "!")))
    return any(_BAD_ESCAPE.search(line) for line in lines)


def write_properties(values: Mapping[str, str], comments: Sequence[str] = ()) -> str:
    """Return the text of a file as Java writes it, keys in the order given."""
    lines = [f"{_escaped_key(key)}={_escaped(value)}" for key, value in values.items()]
    return "".join(f"{line}\n" for line in (*comments, *lines))


def _whole_lines(text: str) -> Iterator[str]:
    """Yield the lines, continued ones joined."""
    parts: list[str] = []
    for line in text.splitlines():
        is_comment = not parts and line.lstrip().startswith(("#", "!"))
        part = line.lstrip() if parts else line
        backslashes = len(part) - len(part.rstrip("\\"))
        if backslashes % 2 and not is_comment:
            parts.append(part[:-1])
            continue
        yield "".join((*parts, part))
        parts = []
    if parts:
        yield "".join(parts)


def _split(line: str) -> tuple[str, str, str]:
    match = _KEY_AND_VALUE.match(line)
    return match.group(1, 2, 3) if match else (line, "", "")  # type: ignore[return-value]


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _CONTROL.get(code, code)

    return _ESCAPED.sub(character, text)


def _escaped_key(text: str) -> str:
    """Return a key, in which a space would be the separator."""
    return _TO_ESCAPE_IN_KEYS.sub(_with_backslash, text)


def _escaped(text: str) -> str:
    return _TO_ESCAPE.sub(_with_backslash, text)


def _with_backslash(match: re.Match[str]) -> str:
    return "\\" + _LETTERS.get(match[0], match[0])
