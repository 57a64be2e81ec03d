"""Values that compress about as much as real data does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from string import ascii_lowercase

_SEED = 7
_WORDS = 4000
_EVENTS = 30_000
_FIRST_TIMESTAMP_MS = 1_700_000_000_000


def payloads(record_size: int) -> Iterator[bytes]:
    """Stretches of a stream of JSON events: what compresses about as much as real data does."""
    choice = random.Random(_SEED)
    text = _text()
    while True:
        start = choice.randrange(len(text) - record_size)
        yield text[start : start + record_size]


@cache
def _text() -> bytes:
    return "".join(_events(random.Random(_SEED))).encode("ascii")


def _events(choice: random.Random) -> Iterator[str]:
    words = [
        "".join(choice.choices(ascii_lowercase, k=choice.randint(2, 9))) for _ in range(_WORDS)
    ]
    # As in any language, few words are most of the text.
    weights = list(accumulate(1 / rank for rank in range(1, _WORDS + 1)))
    for number in range(_EVENTS):
        note = " ".join(choice.choices(words, cum_weights=weights, k=choice.randint(4, 12)))
        identity, at = choice.getrandbits(64), _FIRST_TIMESTAMP_MS + 37 * number
        yield f'{{"id":"{identity:016x}","at":{at},"kind":"{words[number % 40]}","note":"{note}"}}'
