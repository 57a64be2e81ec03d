"""Which segments to measure with, and where they are kept."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORD_SIZES = (1024, 100)
MEGABYTE = 1_000_000
# Of benchmarks that write tables: what producers and Parquet's writers compress with.
_PRODUCED, _WRITTEN = ("none", "lz4", "zstd"), ("none", "zstd")
BROKER = "Java producer and broker"
GENERATED = "kafkalog's writer"


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


def texts(text: str) -> list[str]:
    """The texts of an option, between commas."""
    return text.split(",")


def tables_arguments(parser: argparse.ArgumentParser) -> None:
    """`--codecs`, `--compressions` and `--record-sizes`: from what to what tables are written."""
    parser.add_argument("--codecs", type=texts, default=list(_PRODUCED), help="of the producers")
    parser.add_argument(
        "--compressions", type=texts, default=list(_WRITTEN), help="of the tables' files"
    )
    parser.add_argument(
        "--record-sizes",
        type=lambda text: [int(number) for number in text.split(",")],
        default=list(RECORD_SIZES),
        help="bytes of a value",
    )
