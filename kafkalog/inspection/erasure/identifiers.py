"""What a person's records are known by: keys, headers, values at a path, or text anywhere.

They come from a file or from options. A proof names them by their HMACs only. Rules:
docs/erasure.md F1105, F1106.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kafkalog.errors import OptionError
from kafkalog.inspection.erasure.value_paths import ValuePath

_ALLOWED = (
    'a key, or JSON such as {"key": "cust-17"}, {"header": "user", "value": "cust-17"}, '
    '{"value-path": "$.customer.id", "value": "cust-17"}, '
    '{"key-path": "$.id", "value": "cust-17"} or {"text": "cust-17"}'
)


class Kind(StrEnum):
    """Where in a record an identifier is looked for."""

    KEY = "key"
    KEY_PATH = "key-path"
    HEADER = "header"
    VALUE_PATH = "value-path"
    TEXT = "text"


@dataclass(frozen=True, slots=True, order=True)
class Identifier:
    """One identifier. `name` is a header's name or a path, empty for the other kinds."""

    kind: Kind
    value: bytes
    name: str = ""

    def hmac(self, key: bytes) -> str:
        """Return the HMAC-SHA256 of kind, name and value, with a zero byte between them."""
        message = b"\0".join((self.kind.encode(), self.name.encode(), self.value))
        return hmac.new(key, message, hashlib.sha256).hexdigest()


def given_bytes(option: str, text: str) -> bytes:
    """Return what a text stands for: itself, or bytes after `hex:` or `base64:`. Raises
    OptionError."""
    kind, _, digits = text.partition(":")
    try:
        if kind == "hex":
            return bytes.fromhex(digits)
        if kind == "base64":
            return base64.b64decode(digits, validate=True)
    except (ValueError, binascii.Error) as error:
        raise OptionError(option, text, f"{kind}: and bytes in this form ({error})") from error
    return text.encode()


def of_option(option: str, kind: Kind, text: str) -> Identifier:
    """Return the identifier that an option gives: NAME=VALUE for headers and paths. Raises
    OptionError."""
    if kind in (Kind.KEY, Kind.TEXT):
        return _checked(option, text, Identifier(kind, given_bytes(option, text)))
    name, is_given, value = text.partition("=")
    if not (name and is_given):
        example = "user=cust-17" if kind is Kind.HEADER else "'$.customer.id=cust-17'"
        raise OptionError(option, text, f"a name and a value, such as {example}")
    return _checked(option, text, Identifier(kind, given_bytes(option, value), name))


def of_lines(option: str, lines: Iterable[bytes]) -> list[Identifier]:
    """Return the identifiers of a file: a key per line, or a JSON object per line. Empty lines are
    left out. Raises OptionError with the line's number, and without the line: it is personal."""
    found = list(_of_lines(option, lines))
    if not found:
        raise OptionError(option, None, f"at least one line: {_ALLOWED}")
    return list(dict.fromkeys(found))


def _of_lines(option: str, lines: Iterable[bytes]) -> Iterator[Identifier]:
    for number, line in enumerate(lines, 1):
        place = f"{option}, line {number}"
        try:
            text = line.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise OptionError(place, "(not shown)", "text in UTF-8; bytes as hex:…") from error
        if text.startswith("{"):
            yield _of_json(place, text)
        elif text.strip():
            try:
                yield _checked(place, "(not shown)", Identifier(Kind.KEY, given_bytes("", text)))
            except OptionError as error:
                raise OptionError(place, "(not shown)", error.allowed) from None


def _of_json(place: str, text: str) -> Identifier:
    try:
        fields = json.loads(text)
        return _of_fields(fields)
    except (ValueError, KeyError, TypeError, AttributeError, OptionError) as error:
        allowed = str(error.allowed) if isinstance(error, OptionError) else _ALLOWED
        raise OptionError(place, "(not shown)", allowed) from None


def _of_fields(fields: Mapping[str, Any]) -> Identifier:
    if fields.keys() == {"key"}:
        return _checked("key", "", Identifier(Kind.KEY, given_bytes("key", fields["key"])))
    if fields.keys() == {"text"}:
        return _checked("text", "", Identifier(Kind.TEXT, given_bytes("text", fields["text"])))
    for kind in (Kind.HEADER, Kind.KEY_PATH, Kind.VALUE_PATH):
        if fields.keys() == {str(kind), "value"}:
            value = given_bytes("value", fields["value"])
            return _checked(kind, "", Identifier(kind, value, str(fields[kind])))
    raise KeyError(_ALLOWED)


def _checked(option: str, shown: str, identifier: Identifier) -> Identifier:
    """Return an identifier that can be searched for. Raises OptionError for an empty text, which is
    in every record, and for a path or a value of it that cannot be."""
    if identifier.kind is Kind.TEXT and not identifier.value:
        raise OptionError(option, shown, "a text that is not empty: every record has an empty one")
    if identifier.kind in (Kind.KEY_PATH, Kind.VALUE_PATH):
        ValuePath.of(identifier.name)
        try:
            identifier.value.decode()
        except UnicodeDecodeError:
            raise OptionError(option, shown, "a value that is text, at a path") from None
    return identifier


def kinds_counted(identifiers: Sequence[Identifier]) -> dict[str, int]:
    """Return how many identifiers there are of each kind."""
    kinds = [str(each.kind) for each in identifiers]
    return {str(kind): kinds.count(str(kind)) for kind in Kind if str(kind) in kinds}
