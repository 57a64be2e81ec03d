"""What a user requests of `kafkalog dump`, and how its options are read."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.storage.reading.offset_ranges import OffsetRange, TimestampRange
from kafkalog.views.options.contradictions import refuse_inverted_times
from kafkalog.views.options.parameter_types import GivenOffsets, format_of_file

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
            raise RefusedOptionError("--offsets", "give one range, or one for each partition")
        everywhere = ranges.pop(None, _ALL)
        return cls(everywhere, {key: each for key, each in ranges.items() if key is not None})

    def of_partition(self, key: tuple[str | None, int | None]) -> OffsetRange | None:
        """Return the range of a partition, None where nothing of it is requested."""
        if not self.by_partition:
            return self.everywhere
        return next((each for place, each in self.by_partition.items() if place == key), None)


@dataclass(frozen=True)
class DumpRequest:
    """The values of the options. `limit` counts records or, without `is_deep`, batches."""

    paths: tuple[str, ...]
    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    offsets: tuple[GivenOffsets, ...] = ()
    from_ms: int | None = None
    until_ms: int | None = None
    key: bytes | None = None
    given_format: str | None = None
    deep: bool = False
    payloads: bool = True
    raw: bool = False
    show_secrets: bool = False
    limit: int | None = None
    processes: int | None = None
    output: str | None = None

    def __post_init__(self) -> None:
        refuse_inverted_times(self.from_ms, self.until_ms)

    @property
    def bounds(self) -> OffsetBounds:
        """The offsets to dump. Raises OptionError for two ranges of a partition."""
        return OffsetBounds.of(self.offsets)

    @property
    def timestamps(self) -> TimestampRange | None:
        """The times of the records to dump, None for all."""
        return timestamps_given(self.from_ms, self.until_ms)

    @property
    def is_deep(self) -> bool:
        """Whether to show records, not only batches."""
        return self.deep or self.key is not None or self.timestamps is not None

    @property
    def output_format(self) -> str:
        """The given format, otherwise that of the output's ending, otherwise text."""
        return self.given_format or format_of_file(self.output)

    @property
    def asks_for_some(self) -> bool:
        """Whether only certain offsets or records are requested, which only logs have."""
        is_part = self.bounds != OffsetBounds()
        return is_part or self.timestamps is not None or self.key is not None

    @property
    def is_table(self) -> bool:
        """Whether the format has rows for batches or records, and none for other files."""
        return self.output_format in ("csv", "parquet")


def timestamps_given(from_ms: int | None, until_ms: int | None) -> TimestampRange | None:
    """Return the times between two ends, either of which may be missing; None without both."""
    given = {"first_ms": from_ms, "end_ms": until_ms}
    times = {name: time_ms for name, time_ms in given.items() if time_ms is not None}
    return TimestampRange(**times) if times else None


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
