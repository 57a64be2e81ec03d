"""Numbers and times in words for people, and times back from what people write."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache
from string import Formatter

_LINE_END = re.compile(r"\s*[\r\n]\s*")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_END_OF_1970_MS = 365 * 24 * 3_600_000
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
UNITS_MS = {"ms": 1, "s": 1000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# That durations are written in, the largest that fits twice; those below 2 s in milliseconds.
DURATION_UNITS = ("h", "min", "s")
DURATIONS_ALLOWED = "a number and ms, s, m, h or d, such as 500ms, 30s, 15m, 2h or 1d"
# Up to this many hours a duration is written without days.
_HOURS_ALONE = 47
_MOST_NAMES = 20
# The times that a user can give, after an example.
TIMES_ALLOWED = (
    "UTC where no zone is given, milliseconds since 1970, -24h for 24 hours ago, today or yesterday"
)
_DAYS_AGO = {"today": 0, "yesterday": 1}


def counted(count: int, noun: str) -> str:
    """Return a number and its noun, for sentences."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of a regular noun."""
    return noun + ("es" if noun.endswith("ch") else "s")


def printable(text: str) -> str:
    """Return the text with escapes for characters that a terminal would act on: names
    of groups and of files can be anything."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def printable_json(text: str) -> str:
    """Return JSON with JSON's escapes for the same characters, which only its texts have."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def printable_lines(text: str) -> str:
    """Return a text of lines with the same escapes; line ends stay."""
    return "\n".join(map(printable, text.split("\n")))


def in_a_line(text: str) -> str:
    """Return the text of an error in one line: a line end, with what is indented after it, becomes
    a space."""
    return _LINE_END.sub(" ", text.strip())


def size_text(size: int) -> str:
    """Return a number of bytes with about three digits: `15 B`, `1.5 KiB`, `128 MiB`."""
    if size < 1024:
        return f"{size} B"
    number, unit = size / 1024, 0
    while round(number) >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.{1 if number < 99.95 else 0}f} {_UNITS[unit]}"


def duration_text(length_ms: int) -> str:
    """Return a duration in the largest unit that fits twice: `15 ms`, `90 s`, `36 h`, `2 d 3 h`."""
    sign, length_ms = "-" if length_ms < 0 else "", abs(length_ms)
    for name in DURATION_UNITS:
        unit_ms = UNITS_MS[name]
        if length_ms >= 2 * unit_ms:
            count = (length_ms + unit_ms // 2) // unit_ms
            if name == "h" and count > _HOURS_ALONE:
                days, hours = divmod(count, 24)
                return f"{sign}{days:,} d {hours} h" if hours else f"{sign}{days:,} d"
            return f"{sign}{count} {name}"
    return f"{sign}{length_ms:,} ms"


def given_duration_ms(text: str) -> int | None:
    """Return the milliseconds of a duration such as 30s, 5m or 1d; None if the text is not one."""
    found = re.fullmatch(r"([0-9]{1,12})\s*([a-z]+)", text.strip().lower())
    unit_ms = UNITS_MS.get(found[2]) if found else None
    return int(found[1]) * unit_ms if found and unit_ms else None


def age_text(age_ms: int) -> str:
    """Return how long ago something was; a negative age is in the future."""
    return duration_text(age_ms) if age_ms >= 0 else f"{duration_text(-age_ms)} in the future"


def similar_names(wanted: str, present: Collection[str]) -> list[str]:
    """Return up to two names that are most similar to one that does not exist: those that it is the
    beginning of, if there are any."""
    begun = sorted(name for name in present if len(wanted) > 2 and name.startswith(wanted))
    return begun[:2] or get_close_matches(wanted, present, n=2)


def name_suggestions(wanted: Collection[str], present: Collection[str]) -> str:
    """Return suggestions for names that do not exist: similar names, and the first of all."""
    near = {name: None for each in sorted(wanted) for name in similar_names(each, present)}
    guess = f"did you mean {', '.join(near)}? There are " if near else ""
    return guess + (first_names(sorted(present), _MOST_NAMES) or "none")


def first_names(names: Sequence[str], most: int) -> str:
    """Return at most `most` names, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


@lru_cache
def sentence_parts(words: str) -> tuple[tuple[str, int | None, str], ...]:
    """Return the parts of a sentence with places for numbers: text, the number that follows it
    (None after the last text), and its format. `{0}` is the plain number, `{1:ms}` a duration, and
    `{2:record}` counts a noun."""
    return tuple(
        (text, None if place is None else int(place), written or "")
        for text, place, written, _ in Formatter().parse(words)
    )


# Most of the numbers in a table's sentences are small, and the same in many rows.
@lru_cache(maxsize=2**14)
def number_text(number: int, written: str) -> str:
    """Return a number as a place of `sentence_parts` has it."""
    if written == "ms":
        return duration_text(number)
    return counted(number, written) if written else str(number)


def json_value(value: object) -> object:
    """Return a time, a decimal or a date as JSON can have it; what JSON has stays as it is."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    is_simple = value is None or isinstance(value, bool | int | float | str)
    return value if is_simple else str(value)


def time_text(time_ms: int | None) -> str:
    """Return a time in ISO 8601, UTC: `2026-11-21T12:00:00.000Z`; the number itself outside
    the calendar, nothing for None."""
    if time_ms is None:
        return ""
    try:
        time = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return str(time_ms)
    return f"{time.year:04}-{time:%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


def given_time_ms(text: str, warn: Callable[[str], object], now_ms: int) -> int:
    """Return what `time_ms` returns, or a time relative to the present; report a time that looks
    like seconds to `warn`."""
    relative_ms = _relative_time_ms(text, now_ms)
    if relative_ms is not None:
        return relative_ms
    doubt = time_doubt(text)
    if doubt is not None:
        warn(doubt)
    return time_ms(text)


def time_doubt(text: str) -> str | None:
    """Return a warning about a number that is a time in 1970, but read as seconds a time at which
    Kafka existed; None for other times."""
    if not re.fullmatch(r"[0-9]{10,11}", text) or int(text) >= _END_OF_1970_MS:
        return None
    number = int(text)
    return (
        f"{text} is {time_text(number)}, for numbers are milliseconds; seconds, of "
        f"{time_text(number * 1000)}, would be {number * 1000}"
    )


def _relative_time_ms(text: str, now_ms: int) -> int | None:
    """Return the milliseconds of a time relative to the present: `now`, a duration before it such
    as -24h, or the start in UTC of `today` or `yesterday`; None for other texts."""
    word = text.strip().lower()
    if word in _DAYS_AGO:
        day_ms = UNITS_MS["d"]
        return now_ms - now_ms % day_ms - _DAYS_AGO[word] * day_ms
    if word == "now":
        return now_ms
    before_ms = given_duration_ms(word.removeprefix("-")) if word.startswith("-") else None
    return None if before_ms is None else max(now_ms - before_ms, 0)


def time_ms(text: str) -> int:
    """Return the milliseconds of a time given as such a number or in ISO 8601, UTC by default.

    Raises ValueError with what is allowed.
    """
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        allowed = "milliseconds since 1970, or a time such as 2026-11-21T12:00:00Z"
        raise ValueError(f"{text!r} is not a time: {allowed}") from None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
