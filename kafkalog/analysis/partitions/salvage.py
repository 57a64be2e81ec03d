"""The tables of a salvage, from the rows that its tasks give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_PARTITION = ("cluster_id", "broker_id", "input_path", "topic", "partition")


def lost_ranges(salvaged: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row per range that was not written: schemas/tables/lost_ranges.json."""
    for row in salvaged:
        for lost in row["lost_ranges"] or ():
            yield {**{name: row[name] for name in _PARTITION}, **lost}
