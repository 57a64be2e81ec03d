"""Numbers and times in words for people, and times back from what people write."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def counted(count: int, noun: str) -> str:
    """A number and its noun, for sentences."""
    plural = noun + ("es" if noun.endswith("ch") else "s")
    return f"{count:,} {noun if count == 1 else plural}"


def printable(text: str) -> str:
    """The text with escapes for what a terminal would act on, and for bytes that are no text: names
    of groups and of files can be anything."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def size_text(size: int) -> str:
    """A number of bytes, three digits or so of it: `15 B`, `1.5 KiB`, `128 MiB`."""
    if size < 1024:
        return f"{size} B"
    number, unit = size / 1024, 0
    while round(number) >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.{1 if number < 99.95 else 0}f} {_UNITS[unit]}"


def duration_text(length_ms: int) -> str:
    """A length of time by its largest unit that is there twice: `15 ms`, `90 s`, `36 h`."""
    for name, unit_ms in (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if length_ms >= 2 * unit_ms:
            return f"{round(length_ms / unit_ms):,} {name}"
    return f"{length_ms:,} ms"


def time_text(time_ms: int | None) -> str:
    """A time in ISO 8601, UTC: `2026-11-21T12:00:00.000Z`; the number itself where no calendar
    reaches, nothing for None."""
    if time_ms is None:
        return ""
    try:
        time = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return str(time_ms)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


def time_ms(text: str) -> int:
    """A time that a user gives, in milliseconds: such a number, or ISO 8601, UTC by default.

    Raises ValueError that says what is allowed.
    """
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        allowed = "milliseconds since 1970, or a time such as 2026-11-21T12:00:00Z"
        raise ValueError(f"{text!r} is no time: {allowed}") from None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
