"""What a user requests of `kafkalog dump`, and how its options are read."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kafkalog.errors import OptionError
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.storage.reading.offset_ranges import OffsetRange, TimestampRange
from kafkalog.views.options.click_options import GivenOffsets

DUMP_FORMATS = ("text", "json", "csv", "parquet")

_BY_ENDING = {"json": "json", "jsonl": "json", "csv": "csv", "parquet": "parquet"}


_ALL = OffsetRange(0, LARGEST_OFFSET)


@dataclass(frozen=True)
class OffsetBounds:
    """The offsets to dump: of all partitions, or of those in `by_partition` alone."""

    everywhere: OffsetRange = _ALL
    by_partition: Mapping[TopicPartition, OffsetRange] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Sequence[GivenOffsets]) -> OffsetBounds:
        """Read the values of --offsets. Raises OptionError for two ranges of a partition."""
        ranges: dict[TopicPartition | None, OffsetRange] = {}
        for each in given:
            end = LARGEST_OFFSET if each.end is None else each.end
            ranges[each.topic_partition] = OffsetRange(each.first or 0, end)
        if len(ranges) < len(given) or (None in ranges and len(ranges) > 1):
            raise OptionError("--offsets", "several ranges", "one, or one for each partition")
        everywhere = ranges.pop(None, _ALL)
        return cls(everywhere, {key: each for key, each in ranges.items() if key is not None})

    @property
    def is_everything(self) -> bool:
        """Whether all offsets of all partitions are requested."""
        return self == OffsetBounds()

    def of_partition(self, key: tuple[str | None, int | None]) -> OffsetRange | None:
        """Return the range of a partition, None where nothing of it is requested."""
        if not self.by_partition:
            return self.everywhere
        return next((each for place, each in self.by_partition.items() if place == key), None)


@dataclass(frozen=True)
class DumpRequest:
    """The command's arguments. `limit` counts records or, without `is_deep`, batches."""

    paths: tuple[str, ...]
    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    offsets: OffsetBounds = OffsetBounds()
    timestamps: TimestampRange | None = None
    key: bytes | None = None
    output_format: str = "text"
    is_deep: bool = False
    payloads: bool = True
    decodes: bool = True
    show_secrets: bool = False
    limit: int | None = None
    processes: int | None = None
    output: str | None = None

    @property
    def asks_for_some(self) -> bool:
        """Whether only certain offsets or records are requested, which only logs have."""
        return not self.offsets.is_everything or self.timestamps is not None or self.key is not None

    @property
    def is_table(self) -> bool:
        """Whether the format has rows for batches or records, and none for other files."""
        return self.output_format in ("csv", "parquet")


def format_asked(output_format: str | None, output: str | None) -> str:
    """Return the requested format, otherwise that of the output's ending, otherwise text."""
    ending = "" if output is None else output.rpartition(".")[2].lower()
    return output_format or _BY_ENDING.get(ending, "text")


def times_asked(first_ms: int | None, end_ms: int | None) -> TimestampRange | None:
    """Return the range of record times, None for all. Raises OptionError."""
    if first_ms is None and end_ms is None:
        return None
    everything = TimestampRange()
    times = TimestampRange(
        everything.first_ms if first_ms is None else first_ms,
        everything.end_ms if end_ms is None else end_ms,
    )
    if times.end_ms < times.first_ms:
        raise OptionError("--until-time", end_ms, "a time not before --from-time")
    return times


def bytes_given(option: str, text: str | None) -> bytes | None:
    """Return the bytes of an option's value: text, `hex:` or `base64:`. Raises OptionError."""
    if text is None:
        return None
    prefix, _, rest = text.partition(":")
    try:
        if prefix == "hex":
            return bytes.fromhex(rest)
        if prefix == "base64":
            return base64.b64decode(rest, validate=True)
    except (ValueError, binascii.Error):
        raise OptionError(option, text, f"text, or {prefix}: followed by {prefix}") from None
    return text.encode("utf-8", "surrogateescape")
