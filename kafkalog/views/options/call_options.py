"""`kafkalog.read`: Python values as options of `format("kafkalog")`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from kafkalog.errors import OptionError
from kafkalog.storage.reading.offset_ranges import EARLIEST, LATEST

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Topics = str | Sequence[str] | Mapping[str, Iterable[int]]
OffsetLimits = tuple[int | None, int | None]
OffsetsGiven = OffsetLimits | Mapping[str, Mapping[int, OffsetLimits]]
TimeValue = datetime | int | str
Timestamps = tuple[datetime | int | None, datetime | int | None]
OptionValue = str | int | bool

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE_TOPICS = 'partitions as well, {"orders": [0, 1]}, where offsets are for all of them'


def path_texts(path: Paths) -> list[str]:
    """Return a path or several as Spark's `load` takes them."""
    paths = [path] if isinstance(path, (str, os.PathLike)) else path
    return [os.fspath(one) for one in paths]


def options_of_call(
    *,
    columns: str | Sequence[str] | None = None,
    topics: Topics | None = None,
    offsets: OffsetsGiven | None = None,
    timestamps: Timestamps | None = None,
    as_of: TimeValue | None = None,
    **options: OptionValue,
) -> dict[str, str]:
    """Return the values as options of the source. Raises OptionError if there is no such option."""
    given = option_texts(options)
    if columns is not None:
        given["columns"] = columns if isinstance(columns, str) else ",".join(columns)
    if topics is not None:
        given |= _topics(topics)
    if offsets is not None:
        given |= _offsets(offsets, topics)
    if as_of is not None:
        given["asOf"] = as_of if isinstance(as_of, str) else str(milliseconds("as_of", as_of))
    if timestamps is not None:
        names = ("fromTimestamp", "untilTimestamp")
        for name, time in zip(names, timestamps, strict=True):
            if time is not None:
                given[name] = str(milliseconds("timestamps", time))
    return given


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
    if not isinstance(offsets, Mapping):
        if not isinstance(topics, Mapping):
            raise OptionError("topics", topics, _WHOLE_TOPICS)
        offsets = {topic: dict.fromkeys(topics[topic], offsets) for topic in topics}
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


def milliseconds(name: str, time: datetime | int) -> int:
    """Return the first whole millisecond that is not before a time."""
    if not isinstance(time, datetime):
        return time
    if time.tzinfo is None:
        allowed = "a time with its time zone, such as datetime(2026, 1, 1, tzinfo=UTC)"
        raise OptionError(name, time, allowed)
    return -((_EPOCH - time) // timedelta(milliseconds=1))
