"""The moments that options of `kafkalog metadata` mean."""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.errors import ConflictingOptionsError, OptionError, RepeatedOptionError
from kafkalog.inspection.metadata.replay import END, START, Moment
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.views.options.click_options import AS_OF_OFFSET
from kafkalog.views.options.contradictions import refuse_inverted_times
from kafkalog.views.options.parameter_types import GivenOffsets, PartitionOffset

_ONLY_PARTITION = (CLUSTER_METADATA, 0)
_OFFSETS = "--offsets"


def moment_of(as_of: int | None, as_of_offsets: Sequence[PartitionOffset]) -> Moment:
    """Return the moment of --as-of or --as-of-offset. Raises OptionError."""
    if not as_of_offsets:
        return END if as_of is None else Moment(time_ms=as_of)
    if as_of is not None:
        raise ConflictingOptionsError("--as-of", AS_OF_OFFSET)
    if len(as_of_offsets) > 1:
        raise RepeatedOptionError(AS_OF_OFFSET)
    (given,) = as_of_offsets
    _refuse_other(AS_OF_OFFSET, given)
    return END if given.offset < 0 else Moment(given.offset)


def range_of(
    from_ms: int | None, until_ms: int | None, offsets: Sequence[GivenOffsets]
) -> tuple[Moment, Moment]:
    """Return the moment before the first change of a range, and that of its last. Raises
    OptionError."""
    refuse_inverted_times(from_ms, until_ms)
    if len(offsets) > 1:
        raise RepeatedOptionError(_OFFSETS)
    if offsets and (from_ms is not None or until_ms is not None):
        raise ConflictingOptionsError(_OFFSETS, "--from-time or --until-time")
    for given in offsets:
        _refuse_other(_OFFSETS, given)
        return Moment(given.first or 0), END if given.end is None else Moment(given.end)
    first = START if from_ms is None else Moment(time_ms=from_ms - 1)
    return first, END if until_ms is None else Moment(time_ms=until_ms - 1)


def _refuse_other(option: str, given: GivenOffsets | PartitionOffset) -> None:
    """Refuse another partition than that of the metadata."""
    place = given.topic_partition
    if place is not None and place != _ONLY_PARTITION:
        raise OptionError(option, f"{place[0]}-{place[1]}", f"offsets of {CLUSTER_METADATA}-0")
