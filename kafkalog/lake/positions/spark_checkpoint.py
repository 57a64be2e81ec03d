"""The checkpoint of a query of Spark's Structured Streaming, and where it is in topics.

`offsets/N` has what batch N reads up to: a line with the version, one with the batch's settings,
and one for each source. `commits/N` exists once the batch is in the sink. A query that starts
continues after its last committed batch, and does one again that is planned and not committed. The
line of Spark's Kafka source, and of kafkalog's, is `{"topic":{"0":23}}`; other sources have another
form. Rule: docs/format.md F1240.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kafkalog.errors import StatePositionError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.messages.clients.kept_positions import Keeper, KeptPosition

_OFFSETS, _COMMITS, _METADATA = "offsets", "commits", "metadata"
_NOTHING = "-"


@dataclass(frozen=True)
class SparkCheckpoint:
    """A checkpoint in a directory. `batches` are the numbers of those planned, `committed` those in
    the sink."""

    directory: OutputDirectory
    batches: frozenset[int]
    committed: frozenset[int]
    _read: dict[int, _Batch] = field(default_factory=dict)

    @classmethod
    def at(cls, path: str) -> SparkCheckpoint | None:
        """Return the checkpoint in a directory, None where there is none."""
        directory = OutputDirectory(path)
        batches = _numbers(directory.names(_OFFSETS))
        if not batches and not directory.exists(_METADATA):
            return None
        if not batches and _OFFSETS not in directory.names():
            return None
        return cls(directory, batches, _numbers(directory.names(_COMMITS)))

    @cached_property
    def query_id(self) -> str | None:
        """The id of the query, which tables that it writes know it by."""
        data = self.directory.read(_METADATA)
        try:
            found = None if data is None else json.loads(data).get("id")
        except (ValueError, AttributeError):
            return None
        return found if isinstance(found, str) else None

    @property
    def last_committed(self) -> int | None:
        """The number of the last committed batch whose offsets are still there."""
        return max(self.batches & self.committed, default=None)

    @property
    def planned(self) -> int | None:
        """The number of a batch that is planned and not committed."""
        newest = max(self.batches, default=None)
        return None if newest is None or newest in self.committed else newest

    def positions(self) -> Iterator[KeptPosition]:
        """Yield where the query is, as of its last committed batch. Raises StatePositionError for a
        file that cannot be read."""
        last, planned = self.last_committed, self.planned
        done = {} if last is None else self.offsets(last)
        ahead = {} if planned is None else self.offsets(planned)
        for topic, partition in sorted({**ahead, **done}):
            place = topic, partition
            yield KeptPosition(
                *(Keeper.SPARK, self.directory.path, self.query_id, *place),
                # What a first batch reads from is where the source began.
                done.get(place, self.first_offsets.get(place, 0)),
                None if last is None else self.batch(last).at_ms,
                last,
                ahead.get(place),
            )

    @cached_property
    def first_offsets(self) -> dict[TopicPartition, int]:
        """Where the first batch begins, by `sources/N/0`; none where it is not there."""
        found: dict[TopicPartition, int] = {}
        for name in self.directory.names("sources"):
            data = self.directory.read(f"sources/{name}/0")
            lines = [] if data is None else data.lstrip(b"\0").decode(errors="replace").split("\n")
            for line in lines:
                found.update(_offsets_in(line) or {})
        return found

    def offsets(self, number: int) -> dict[TopicPartition, int]:
        """Return up to which offsets a batch reads, of all its sources that are topics."""
        return self.batch(number).offsets

    def batch(self, number: int) -> _Batch:
        """Return what the file of a batch says."""
        if number not in self._read:
            self._read[number] = self._batch(number)
        return self._read[number]

    def _batch(self, number: int) -> _Batch:
        path = f"{_OFFSETS}/{number}"
        data = self.directory.read(path)
        lines = [] if data is None else data.decode(errors="replace").split("\n")
        if not lines or not lines[0].startswith("v"):
            location = self.directory.location(path)
            raise StatePositionError(f"{location} is not a batch of a query of Spark's")
        settings = _json(lines[1]) if len(lines) > 1 else None
        at_ms = settings.get("batchTimestampMs") if isinstance(settings, dict) else None
        offsets: dict[TopicPartition, int] = {}
        others = 0
        for line in lines[2:]:
            if not line.strip() or line.strip() == _NOTHING:
                continue
            found = _offsets_in(line)
            others += found is None
            offsets.update(found or {})
        return _Batch(offsets, at_ms if isinstance(at_ms, int) else None, others)

    @property
    def other_sources(self) -> int:
        """How many sources of the query are not topics."""
        newest = max(self.batches, default=None)
        return 0 if newest is None else self.batch(newest).other_sources


@dataclass(frozen=True, slots=True)
class _Batch:
    """Up to which offsets a batch reads, when it was planned, and how many of its sources are not
    topics."""

    offsets: dict[TopicPartition, int]
    at_ms: int | None
    other_sources: int


def _numbers(names: list[str]) -> frozenset[int]:
    return frozenset(int(name) for name in names if name.isascii() and name.isdigit())


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _offsets_in(line: str) -> dict[TopicPartition, int] | None:
    """Return the offsets in the line of a source, None where it is of another form."""
    found = _json(line)
    if not isinstance(found, dict):
        return None
    offsets: dict[TopicPartition, int] = {}
    for topic, partitions in found.items():
        if not isinstance(partitions, dict):
            return None
        for number, offset in partitions.items():
            if not number.isdigit() or type(offset) is not int:
                return None
            offsets[topic, int(number)] = offset
    return offsets
