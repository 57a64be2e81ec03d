"""The moments that options of `kafkalog metadata` mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

from kafkalog.coordination.metadata.image import END, START, Moment
from kafkalog.errors import (
    ConflictingOptionsError,
    OptionError,
    RefusedOptionError,
    RepeatedOptionError,
)
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.views.options.click_options import AS_OF_OFFSET
from kafkalog.views.options.parameter_types import PartitionOffset, Time

_WORDS = {"start": START, "end": END}
# A time in milliseconds has more digits.
_OFFSET = re.compile(r"[0-9]{1,11}")


class MomentType(click.ParamType[Moment]):
    """A time, an offset, `start` or `end`, as a Moment."""

    name = "moment"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Moment:
        if isinstance(value, Moment):
            return value
        if value in _WORDS:
            return _WORDS[value]
        if _OFFSET.fullmatch(value):
            return Moment(int(value))
        return Moment(time_ms=Time().convert(value, param, ctx))


def moments_in_order(
    _context: click.Context, _option: click.Parameter, given: tuple[Moment, Moment] | None
) -> tuple[Moment, Moment] | None:
    """Return the two moments of --diff. Raises OptionError if the second one is certainly before
    the first; which of an offset and a time is earlier, the log alone knows."""
    if given is not None:
        first, last = given
        # A moment has a time or an offset, `end` neither.
        is_comparable = first == END or last == START or (first[0] == END[0]) == (last[0] == END[0])
        if is_comparable and (last.time_ms < first.time_ms or last.end_offset < first.end_offset):
            raise RefusedOptionError("--diff", "TO is before FROM: give the earlier moment first")
    return given


def moment_of(as_of: int | None, as_of_offsets: Sequence[PartitionOffset]) -> Moment:
    """Return the moment of --as-of or --as-of-offset. Raises OptionError."""
    if not as_of_offsets:
        return END if as_of is None else Moment(time_ms=as_of)
    if as_of is not None:
        raise ConflictingOptionsError("--as-of", AS_OF_OFFSET)
    if len(as_of_offsets) > 1:
        raise RepeatedOptionError(AS_OF_OFFSET)
    (given,) = as_of_offsets
    place = given.topic_partition
    if place not in (None, (CLUSTER_METADATA, 0)):
        found = f"{place[0]}-{place[1]}" if place else ""
        raise OptionError(AS_OF_OFFSET, found, f"offsets of {CLUSTER_METADATA}-0")
    return END if given.offset < 0 else Moment(given.offset)
