"""What a user asks `kafkalog dump` for, and how the options are read."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

from kafkalog.errors import OptionError
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.storage.reading.offset_ranges import TimestampRange

DUMP_FORMATS = ("text", "json", "csv", "parquet")

_BY_ENDING = {"json": "json", "jsonl": "json", "csv": "csv", "parquet": "parquet"}


@dataclass(frozen=True)
class DumpRequest:
    """The command's arguments. Offsets are from `first_offset` up to, not including, `end_offset`;
    `limit` counts records or, without `is_deep`, batches."""

    paths: tuple[str, ...]
    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    first_offset: int = 0
    end_offset: int = LARGEST_OFFSET
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
        """Whether only certain offsets or records are asked for, which only logs have."""
        is_some = (self.first_offset, self.end_offset) != (0, LARGEST_OFFSET)
        return is_some or self.timestamps is not None or self.key is not None

    @property
    def is_table(self) -> bool:
        """Whether the format has a row for each batch or record, and none for other files."""
        return self.output_format in ("csv", "parquet")


def format_asked(output_format: str | None, output: str | None) -> str:
    """The format that was asked for, or that the output's name ends with; text if neither says."""
    ending = "" if output is None else output.rpartition(".")[2].lower()
    return output_format or _BY_ENDING.get(ending, "text")


def offsets_asked(text: str | None) -> tuple[int, int]:
    """`FROM:UNTIL`, either of which can be missing, or one offset. Raises OptionError."""
    if text is None:
        return 0, LARGEST_OFFSET
    match = re.fullmatch(r"([0-9]{0,19})(:?)([0-9]{0,19})", text)
    if match is None or text in ("", ":"):
        raise OptionError("--offsets", text, "FROM:UNTIL, FROM:, :UNTIL, or one offset")
    first = int(match[1] or 0)
    end = int(match[3]) if match[3] else (LARGEST_OFFSET if match[2] else first + 1)
    if not first < end <= LARGEST_OFFSET:
        raise OptionError("--offsets", text, "FROM below UNTIL, which is not included")
    return first, end


def times_asked(first_ms: int | None, end_ms: int | None) -> TimestampRange | None:
    """The times that records shall have, None for all. Raises OptionError."""
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
    """The bytes that an option means: text, `hex:` or `base64:`. Raises OptionError."""
    if text is None:
        return None
    prefix, _, rest = text.partition(":")
    try:
        if prefix == "hex":
            return bytes.fromhex(rest)
        if prefix == "base64":
            return base64.b64decode(rest, validate=True)
    except (ValueError, binascii.Error):
        raise OptionError(option, text, f"text, or {prefix}: with {prefix} behind it") from None
    return text.encode("utf-8", "surrogateescape")
