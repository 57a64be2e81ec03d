"""The place of a message in its .proto file. Rule: docs/format.md F293."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafkalog.errors import SchemaError

# Comments and texts first: they can contain what looks like a message. One that is not closed goes
# to the end, or else it would be searched for at each place again.
_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r"""|"(?:[^"\\]++|\\.)*+(?:"|\Z)|'(?:[^'\\]++|\\.)*+(?:'|\Z)"""
    r"|[A-Za-z_][\w.]*|[{};]",
    re.DOTALL,
)


def message_indexes(proto: str) -> dict[str, tuple[int, ...]]:
    """Return each message of the file, by its full name, with its place: the number of a top-level
    message among the file's messages; for a nested message the place of the outer one and its own
    number."""
    tokens = [token for token in _TOKEN.findall(proto) if not token.startswith(("/", '"', "'"))]
    package = _package(tokens)
    return {f"{package}{name}": indexes for name, indexes in _messages(tokens)}


def message_place(proto: str, message: str) -> tuple[int, ...]:
    """Return the place of one message. Raises SchemaError if the file does not define it."""
    places = message_indexes(proto)
    if message not in places:
        raise SchemaError(f"there is no message {message}, but {', '.join(places) or 'none'}")
    return places[message]


def _package(tokens: list[str]) -> str:
    for number, token in enumerate(tokens[:-1]):
        if token == "package" and _starts_statement(tokens, number):
            return f"{tokens[number + 1]}."
    return ""


def _messages(tokens: list[str]) -> Iterator[tuple[str, tuple[int, ...]]]:
    # The open blocks: a message's name and place, or None for any other block; and the number of
    # messages so far in the file and in each open block.
    blocks: list[tuple[str, tuple[int, ...]] | None] = []
    counts = [0]
    for number, token in enumerate(tokens):
        if token == "{":
            opened = None
            is_message = number >= 2 and tokens[number - 2] == "message"
            if is_message and _starts_statement(tokens, number - 2) and None not in blocks:
                outer_name, outer_place = blocks[-1] if blocks and blocks[-1] else ("", ())
                opened = f"{outer_name}{tokens[number - 1]}", (*outer_place, counts[-1])
                counts[-1] += 1
                yield opened
                opened = f"{opened[0]}.", opened[1]
            blocks.append(opened)
            counts.append(0)
        elif token == "}" and blocks:
            blocks.pop()
            counts.pop()


def _starts_statement(tokens: list[str], number: int) -> bool:
    return number == 0 or tokens[number - 1] in ("{", "}", ";")
