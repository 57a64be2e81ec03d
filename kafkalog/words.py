"""Numbers and times in words for people, and times back from what people write."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from string import Formatter

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_END_OF_1970_MS = 365 * 24 * 3_600_000
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
# The units of a length of time, and up to how many hours it has no days.
DURATION_UNITS = (("h", 3_600_000), ("min", 60_000), ("s", 1000))
HOURS_ALONE = 47
_MOST_NAMES = 20
# What a time that a user gives can be, behind an example.
TIMES_ALLOWED = "UTC where no zone is given, or milliseconds since 1970"


def counted(count: int, noun: str) -> str:
    """A number and its noun, for sentences."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Of regular nouns."""
    return noun + ("es" if noun.endswith("ch") else "s")


def printable(text: str) -> str:
    """The text with escapes for what a terminal would act on, and for bytes that are no text: names
    of groups and of files can be anything."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def printable_lines(text: str) -> str:
    """The same for a text of lines, whose ends stay."""
    return "\n".join(map(printable, text.split("\n")))


def size_text(size: int) -> str:
    """A number of bytes, three digits or so of it: `15 B`, `1.5 KiB`, `128 MiB`."""
    if size < 1024:
        return f"{size} B"
    number, unit = size / 1024, 0
    while round(number) >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.{1 if number < 99.95 else 0}f} {_UNITS[unit]}"


def duration_text(length_ms: int) -> str:
    """A length of time by its largest unit that is there twice, of days the hours too: `15 ms`,
    `90 s`, `36 h`, `2 d 3 h`. `kafkalog.analysis.sentences` says the same in a column."""
    sign, length_ms = "-" if length_ms < 0 else "", abs(length_ms)
    for name, unit_ms in DURATION_UNITS:
        if length_ms >= 2 * unit_ms:
            count = (length_ms + unit_ms // 2) // unit_ms
            if name == "h" and count > HOURS_ALONE:
                days, hours = divmod(count, 24)
                return f"{sign}{days:,} d {hours} h" if hours else f"{sign}{days:,} d"
            return f"{sign}{count} {name}"
    return f"{sign}{length_ms:,} ms"


def age_text(age_ms: int) -> str:
    """How long ago something was, as `duration_text` has it; less than nothing is in the future.
    `kafkalog.analysis.sentences` says the same in a column."""
    return duration_text(age_ms) if age_ms >= 0 else f"{duration_text(-age_ms)} in the future"


def names_that_are_there(wanted: Collection[str], present: Collection[str]) -> str:
    """For whoever named what is not there: names that look like it, and the first of all."""
    near = {name: None for each in sorted(wanted) for name in get_close_matches(each, present, n=2)}
    guess = f"did you mean {', '.join(near)}? There are " if near else ""
    return guess + (first_names(sorted(present), _MOST_NAMES) or "none")


def first_names(names: Sequence[str], most: int) -> str:
    """The first names, so many at most, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


@lru_cache
def sentence_parts(words: str) -> tuple[tuple[str, int | None, str], ...]:
    """What a sentence with places for numbers is made of: text, the number behind it, None behind
    the last text, and how the number is written. `{0}` is written as it is, `{1:ms}` as a length of
    time, and `{2:record}` counts a noun."""
    return tuple(
        (text, None if place is None else int(place), written or "")
        for text, place, written, _ in Formatter().parse(words)
    )


def sentence(words: str, numbers: Sequence[int]) -> str:
    """The words, in the form of `sentence_parts`, with numbers in their places."""
    said = []
    for text, place, written in sentence_parts(words):
        said.append(text)
        if place is not None:
            said.append(_number_text(numbers[place], written))
    return "".join(said)


def _number_text(number: int, written: str) -> str:
    if written == "ms":
        return duration_text(number)
    return counted(number, written) if written else str(number)


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


def given_time_ms(text: str, tell: Callable[[str], object]) -> int:
    """The same as `time_ms`; where the time looks like seconds, `tell` hears that."""
    doubt = time_doubt(text)
    if doubt is not None:
        tell(doubt)
    return time_ms(text)


def time_doubt(text: str) -> str | None:
    """What is odd about a time that a user gives as a number: that it is in 1970, while as seconds
    it would be a time of Kafka's."""
    if not re.fullmatch(r"[0-9]{10,11}", text) or int(text) >= _END_OF_1970_MS:
        return None
    number = int(text)
    return (
        f"{text} is {time_text(number)}, for numbers are milliseconds; seconds, of "
        f"{time_text(number * 1000)}, would be {number * 1000}"
    )


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
