"""The plain bytes of identifiers in what cannot be searched record by record: damaged ranges, files
beside logs, files that brokers do not write. Rule: docs/erasure.md F1260.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from kafkalog.inspection.erasure.identifiers import Identifier
from kafkalog.storage.files.files import InputFile

# Fewer bytes are anywhere by chance.
_LEAST_BYTES = 4
_PIECE_BYTES = 4 * 1024 * 1024


def plain_needles(identifiers: Sequence[Identifier]) -> list[bytes]:
    """Return the bytes to look for: the values of identifiers, without the shortest."""
    values = {spelling for each in identifiers for spelling in spellings(each.value)}
    return sorted(value for value in values if len(value) >= _LEAST_BYTES)


def spellings(value: bytes) -> list[bytes]:
    """Return how a text may be written: as it is, and as JSON's serializers do, with escapes for
    what is not ASCII. Rule: docs/erasure.md F1261."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return [value]
    lower = json.dumps(text)[1:-1]
    upper = "".join(
        f"\\u{each[2:].upper()}" if each.startswith("\\u") else each for each in _units(lower)
    )
    utf8 = json.dumps(text, ensure_ascii=False)[1:-1]
    found = [text, lower, upper, utf8, *(each.replace("/", "\\/") for each in (lower, upper, utf8))]
    return [each.encode() for each in dict.fromkeys(found)]


def _units(escaped: str) -> Iterator[str]:
    """Yield the characters and escapes of a JSON text."""
    position = 0
    while position < len(escaped):
        size = 1
        if escaped[position] == "\\":
            size = 6 if escaped[position + 1] == "u" else 2
        yield escaped[position : position + size]
        position += size


def first_position(
    path: str, needles: Sequence[bytes], spans: Iterable[tuple[int, int]] | None = None
) -> int | None:
    """Return where one of the texts first is in the given spans (start, end) of a log, or in all of
    a file as it is stored; None if none is. Bytes that cannot be read are none of them."""
    if not needles:
        return None
    with InputFile(path, as_stored=spans is None) as file:
        overlap = max(map(len, needles)) - 1
        for start, end in [(0, file.size)] if spans is None else spans:
            for position in range(start, end, _PIECE_BYTES):
                data = file.read_around(position, min(_PIECE_BYTES + overlap, end - position))
                places = [place for each in needles if (place := data.find(each)) >= 0]
                if places:
                    return position + min(places)
    return None
