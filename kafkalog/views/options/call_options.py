"""`kafkalog.read` and `kafkalog.scan`: Python values as options of `format("kafkalog")`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import index
from time import time_ns

from kafkalog.errors import (
    OptionError,
    RefusedOptionError,
    UnknownArgumentError,
    refuse_unknown_arguments,
)
from kafkalog.log_lines import logger
from kafkalog.storage.reading.offset_ranges import EARLIEST, LATEST
from kafkalog.views.options.options import OPTION_NAMES
from kafkalog.words import given_time_ms

_logger = logger(__name__)
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Topics = str | Sequence[str] | Mapping[str, Iterable[int]]
OffsetLimits = tuple[int | None, int | None]
OffsetsGiven = OffsetLimits | Mapping[str, Mapping[int, OffsetLimits]]
TimeValue = datetime | int | str
OptionValue = str | int | bool

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = {"asOf": "as_of", "fromTimestamp": "from_time", "untilTimestamp": "until_time"}
_ARGUMENTS = ("columns", "topics", "offsets", "as_of", "from_time", "until_time")
# Options that an argument with another name sets, or that are about brokers.
_NOT_HERE = ("path", "paths", "columns", *_TIMES)
_FORMER_NAMES = {"timestamps": "use from_time and until_time"}
_RANGES = '(10, 20) with topics={"orders": [0, 1]}, or {"orders": {0: (10, 20)}}; None for no bound'


def named_in_python(options: Iterable[str]) -> dict[str, str]:
    """Return options of a source by the names that their arguments have: `isolation_level` is
    isolationLevel."""
    return {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name): name for name in options}


_SOURCE_NAMES = named_in_python(
    name for name in OPTION_NAMES if name not in _NOT_HERE and "." not in name
)


def path_texts(path: Paths) -> list[str]:
    """Return a path or several as Spark's `load` takes them."""
    paths = [path] if isinstance(path, (str, os.PathLike)) else path
    return [os.fspath(one) for one in paths]


def options_of_call(
    others: Collection[str] = (),
    /,
    *,
    columns: str | Sequence[str] | None = None,
    topics: Topics | None = None,
    offsets: OffsetsGiven | None = None,
    from_time: TimeValue | None = None,
    until_time: TimeValue | None = None,
    as_of: TimeValue | None = None,
    **options: OptionValue,
) -> dict[str, str]:
    """Return the values as options of the source. Other options have the source's names with
    underscores: `isolation_level` is isolationLevel. Raises OptionError for an argument that is
    none of them; `others` are suggested too."""
    named = {_source_name(name, others): value for name, value in options.items()}
    given = option_texts(named)
    if columns is not None:
        given["columns"] = columns if isinstance(columns, str) else ",".join(columns)
    if topics is not None:
        given |= _topics(topics)
    if offsets is not None:
        given |= _offsets(offsets, topics)
    times = {"asOf": as_of, "fromTimestamp": from_time, "untilTimestamp": until_time}
    for (name, option), time in zip(_TIMES.items(), times.values(), strict=True):
        if time is not None:
            given[name] = str(milliseconds(option, time))
    return given


def _source_name(name: str, others: Collection[str]) -> str:
    """Return the source's name of an argument."""
    if "." in name:
        return name
    if name in _FORMER_NAMES:
        raise UnknownArgumentError(name, _FORMER_NAMES[name])
    refuse_unknown_arguments([name], {*argument_names(), *others})
    return _SOURCE_NAMES[name]


def argument_names() -> set[str]:
    """Return the names of the arguments that options have in Python."""
    return {*_ARGUMENTS, *_SOURCE_NAMES}


def option_texts(options: Mapping[str, OptionValue]) -> dict[str, str]:
    """Return options as Spark passes them: as text, with true and false in its spelling."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }


def _topics(topics: Topics) -> dict[str, str]:
    if isinstance(topics, str):
        return {"subscribe": topics}
    if isinstance(topics, Mapping):
        return {"assign": json.dumps({topic: list(topics[topic]) for topic in topics})}
    return {"subscribe": ",".join(topics)}


def _offsets(offsets: OffsetsGiven, topics: Topics | None) -> dict[str, str]:
    if not isinstance(offsets, Mapping) and isinstance(topics, Mapping):
        offsets = {topic: dict.fromkeys(topics[topic], offsets) for topic in topics}
    if not isinstance(offsets, Mapping) or not all(map(_are_ranges, offsets.values())):
        raise OptionError("offsets", offsets, _RANGES)
    given = (
        {} if topics is not None else _topics({topic: list(offsets[topic]) for topic in offsets})
    )
    for end, name, none in ((0, "startingOffsets", EARLIEST), (1, "endingOffsets", LATEST)):
        by_topic = {
            topic: {
                str(partition): none if (bound := bounds[end]) is None else bound
                for partition, bounds in partitions.items()
            }
            for topic, partitions in offsets.items()
        }
        given[name] = json.dumps(by_topic)
    return given


def _are_ranges(partitions: object) -> bool:
    return isinstance(partitions, Mapping) and all(
        isinstance(bounds, tuple | list)
        and len(bounds) == 2
        and all(bound is None or type(bound) is int for bound in bounds)
        for bounds in partitions.values()
    )


def milliseconds(name: str, time: TimeValue) -> int:
    """Return the first whole millisecond that is not before a time; text can be relative to the
    present, as on the command line. Raises OptionError for what is not a time, and for a datetime
    without a time zone."""
    if isinstance(time, str):
        try:
            return given_time_ms(time, _logger.warning, time_ns() // 1_000_000)
        except ValueError as error:
            raise RefusedOptionError(name, str(error)) from None
    if not isinstance(time, datetime):
        allowed = "a time, or whole milliseconds since 1970"
        # True is a whole number for Python.
        if isinstance(time, bool):
            raise OptionError(name, time, allowed)
        try:
            return index(time)
        except TypeError:
            raise OptionError(name, time, allowed) from None
    if time.tzinfo is None:
        allowed = "a time with its time zone, such as datetime(2026, 1, 1, tzinfo=UTC)"
        raise OptionError(name, time, allowed)
    return -((_EPOCH - time) // timedelta(milliseconds=1))
