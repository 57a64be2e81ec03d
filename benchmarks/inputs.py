"""The segments to measure with: a Java producer's, or else those of kafkalog's own writer.

They are kept, for making them takes longer than measuring.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from string import ascii_lowercase

import numpy as np

from benchmarks.segments import Segment, frame, write_repeated
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.wire.compression import CompressionType

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORD_SIZES = (1024, 100)
MEGABYTE = 1_000_000
BROKER = "Java producer and broker"
GENERATED = "kafkalog's writer"

_SEED = 7
_WORDS = 4000
_EVENTS = 30_000
_WRITTEN_BYTES = 16 * MEGABYTE  # the writer is slow: what exceeds this is repeated
_BATCH_BYTES = 64 * 1024
_RECORD_OVERHEAD = 27  # a key of 16 bytes and the fields around
_FIRST_TIMESTAMP_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Input:
    """A file to measure with."""

    codec: str
    record_size: int
    path: Path
    origin: str

    @property
    def label(self) -> str:
        return f"{self.codec} {self.record_size} B"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to measure with: about `size` bytes of values in each file."""

    codecs: Sequence[str]
    record_sizes: Sequence[int]
    size: int
    directory: Path

    def inputs(self, origin: str, short_name: str) -> list[Input]:
        """The inputs by where they are kept, whether they exist or not."""
        return [
            Input(codec, record_size, self.directory / name, origin)
            for record_size in self.record_sizes
            for codec in self.codecs
            for name in [f"{short_name}-{codec}-{record_size}-{self.size}.log"]
        ]


def prepare(wanted: Wanted, origin: str | None, say: Callable[[str], None]) -> list[Input]:
    """The files, made unless they exist: by `origin`, or by whichever of the two is possible."""
    wanted.directory.mkdir(parents=True, exist_ok=True)
    if origin == GENERATED:
        return _generated(wanted, say)
    # Not imported unless wanted: it needs the tests' helpers.
    from benchmarks.broker_inputs import BrokerMissingError, produced

    try:
        return produced(wanted, say)
    except BrokerMissingError as error:
        if origin == BROKER:
            raise
        say(f"no real broker here ({error}); segments of kafkalog's writer instead")
        return _generated(wanted, say)


def _generated(wanted: Wanted, say: Callable[[str], None]) -> list[Input]:
    inputs = wanted.inputs(GENERATED, "generated")
    for item in inputs:
        if not item.path.exists():
            say(f"writing {item.label}")
            _generate(item, wanted.size)
    return inputs


def _generate(item: Input, size: int) -> None:
    batches = b"".join(_batches(item, min(size, _WRITTEN_BYTES)))
    data = memoryview(bytearray(batches))
    repetitions = max(size // _WRITTEN_BYTES, 1)
    scratch = item.path.with_suffix(".tmp")
    with scratch.open("wb") as file:
        write_repeated(
            Segment(np.frombuffer(data, dtype=np.uint8), frame(data)), repetitions * len(data), file
        )
    scratch.replace(item.path)


def _batches(item: Input, size: int) -> Iterator[bytes]:
    fields = BatchFields(compression=CompressionType[item.codec.upper()])
    values = payloads(item.record_size)
    count = max(_BATCH_BYTES // (item.record_size + _RECORD_OVERHEAD), 1)
    for first in range(0, max(size // item.record_size, 1), count):
        offsets = range(first, first + count)
        yield write_batch([_record(offset, next(values)) for offset in offsets], fields)


def _record(offset: int, value: bytes) -> Record:
    return Record(offset, _FIRST_TIMESTAMP_MS + offset, 0, b"key-%012d" % offset, value)


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
