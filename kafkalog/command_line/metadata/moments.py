"""The moments that options of `kafkalog metadata` mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

from kafkalog.coordination.metadata.image import END, START, Moment
from kafkalog.errors import ConflictingOptionsError, OptionError, RepeatedOptionError
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
