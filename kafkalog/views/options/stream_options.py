"""The options of `readStream.format("kafkalog")`. Reference: docs/options.md, docs/ingest.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafkalog.errors import OptionError
from kafkalog.storage.reading.offset_ranges import OffsetLimit
from kafkalog.views.options.offset_options import ENDING, STARTING, stream_start
from kafkalog.views.options.option_values import OptionValues
from kafkalog.views.options.options import (
    ISOLATED_VIEWS,
    MAX_TRIGGER_DELAY,
    OPTION_NAMES,
    STREAM_LIMITS,
    ReadOptions,
    Replicas,
    read_options,
)

MAX_OFFSETS, MAX_BYTES, MIN_OFFSETS = STREAM_LIMITS
_LONGEST_WAIT_MS = 15 * 60 * 1000


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The options of a stream: what it reads and from where (None: the latest offsets), the most
    for one micro-batch (None: all), and how much it waits for and how long."""

    read: ReadOptions
    starting: OffsetLimit | None
    starting_option: str
    max_offsets: int | None
    max_bytes: int | None
    min_offsets: int | None
    max_trigger_delay_ms: int

    def refuse_limits(self, allowed: str) -> None:
        """Raise OptionError where a micro-batch is to be limited, with what is allowed."""
        limits = {
            MAX_OFFSETS: self.max_offsets,
            MAX_BYTES: self.max_bytes,
            MIN_OFFSETS: self.min_offsets,
        }
        for name, value in limits.items():
            if value is not None:
                raise OptionError(name, value, allowed)


def stream_options(given: Mapping[str, str]) -> StreamOptions:
    """Parse and check the options of a stream. Raises OptionError naming the option."""
    options = OptionValues(given, OPTION_NAMES)
    starting = stream_start(options)
    read = read_options(_without_bounds(given))
    if read.view not in ISOLATED_VIEWS:
        views = " or ".join(view.value for view in ISOLATED_VIEWS)
        raise OptionError("view", read.view.value, f"{views} in a stream")
    if read.replicas is Replicas.ALL:
        raise OptionError("replicas", read.replicas.value, "best in a stream")
    most, least = _limit(options, MAX_OFFSETS), _limit(options, MIN_OFFSETS)
    if most is not None and least is not None and least > most:
        raise OptionError(MIN_OFFSETS, least, f"{most} at most, which is {MAX_OFFSETS}")
    return StreamOptions(
        read=read,
        starting=starting,
        starting_option=next((name for name in STARTING if options.text(name)), STARTING[-1]),
        max_offsets=most,
        max_bytes=_limit(options, MAX_BYTES),
        min_offsets=least,
        max_trigger_delay_ms=options.duration_ms(MAX_TRIGGER_DELAY, default=_LONGEST_WAIT_MS),
    )


def loaded_options(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options of a read that may be a stream. Raises OptionError if neither a batch read
    nor a stream can have them."""
    try:
        return read_options(given)
    except OptionError as error:
        if error.name != STARTING[-1]:
            raise
        try:
            return stream_options(given).read
        except OptionError:
            raise error from None


def _without_bounds(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options without those that mean different things in batch reads and streams."""
    left_out = {name.lower() for name in (*STARTING, *ENDING, *STREAM_LIMITS, MAX_TRIGGER_DELAY)}
    return {name: value for name, value in given.items() if name.lower() not in left_out}


def _limit(options: OptionValues, name: str) -> int | None:
    return None if options.text(name) is None else options.number(name, default=1)
