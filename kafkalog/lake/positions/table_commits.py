"""What the commits of Delta and Iceberg tables say of positions in topics, whoever wrote them.

kafkalog's own commits have the offsets of topics. A sink of Spark's has the id of its query and the
number of its batch: Delta in action `txn`, Iceberg in the summary of a snapshot. Only the query's
checkpoint says what the batch read. The Iceberg sink of Kafka Connect has the next offsets of its
control topic; its groups have those of the topics that it reads. Rules: docs/format.md F1241 and
F1242.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkalog.errors import StatePositionError
from kafkalog.lake.formats.recorded_table import recorded_positions
from kafkalog.lake.formats.targets import ICEBERG, TablePlace, iceberg_table
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.messages.clients.kept_positions import Keeper, KeptPosition
from kafkalog.storage.log_dir.table_formats import DELTA_LOG, MANIFEST

_METADATA = "metadata"
_DELTA_COMMIT = re.compile(rf"{DELTA_LOG}/([0-9]{{20}})\.json")
_ICEBERG_METADATA = re.compile(r"(?:v([0-9]+)|([0-9]+)-[^/]*)\.metadata\.json")
_OWN, _CONNECT = "kafkalog.positions", "kafka.connect.offsets."
_QUERY_ID, _EPOCH_ID = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"


@dataclass
class TableCommits:
    """The positions in a table's commits. `batches` are the last batches of writers by their ids,
    most often of queries of Spark's, and when they were committed; `control_offsets` those of
    Connect's Iceberg sink, by the name of the control topic and the group, with a dot between."""

    keeper: Keeper
    path: str
    positions: list[KeptPosition] = field(default_factory=list)
    batches: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    control_offsets: dict[str, tuple[dict[int, int], int | None]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no commit that is there says anything of positions."""
        return not (self.positions or self.batches or self.control_offsets)

    def control_positions(self, topics: Sequence[str]) -> Iterator[KeptPosition]:
        """Yield the positions in control topics, which are known best from the `topics` there
        are: their names can have dots, and so can groups'."""
        for joined, (offsets, at_ms) in self.control_offsets.items():
            known = [topic for topic in topics if joined.startswith(f"{topic}.")]
            topic = max(known, key=len, default=joined.rpartition(".")[0])
            group = joined[len(topic) + 1 :]
            for partition, offset in offsets.items():
                place = topic, partition, offset, at_ms
                yield KeptPosition(self.keeper, self.path, f"control topic of {group}", *place)


def is_table(path: str) -> bool:
    """Return whether a directory has a table of a kind that `table_commits` reads."""
    directory = OutputDirectory(path)
    names = set(directory.names())
    is_iceberg = _METADATA in names and _newest_metadata(directory) is not None
    return DELTA_LOG in names or MANIFEST in names or is_iceberg


def table_commits(path: str) -> TableCommits | None:
    """Return what the commits of the table in a directory say, None where there is no table. Raises
    StatePositionError for a commit that cannot be read."""
    directory = OutputDirectory(path)
    names = set(directory.names())
    if DELTA_LOG in names:
        found = TableCommits(Keeper.DELTA, directory.path)
        _take_delta(found, directory)
    elif MANIFEST in names:
        found = TableCommits(Keeper.PARQUET, directory.path)
    elif _METADATA in names and (newest := _newest_metadata(directory)) is not None:
        found = TableCommits(Keeper.ICEBERG, directory.path)
        _take_iceberg(found, directory, newest)
        return found
    else:
        return None
    try:
        positions = recorded_positions(path, None, None)
    except StatePositionError:
        return found
    topic_ids = positions.topic_ids
    found.positions = [
        KeptPosition(
            *(found.keeper, found.path, None, topic, partition, offset),
            topic_id=topic_ids.get(topic),
        )
        for (topic, partition), offset in sorted(positions.next_offsets.items())
    ]
    return found


def catalog_commits(catalog: str, table: str) -> TableCommits:
    """Return what the commits of an Iceberg table of a catalog say. Raises StatePositionError where
    there is no such table, and for a commit that cannot be read."""
    place = iceberg_table(TablePlace(ICEBERG, catalog=catalog, table=table))
    loaded = place.load()
    if loaded is None:
        raise StatePositionError(f"catalog {catalog} has no table {place.name}")
    found = TableCommits(Keeper.ICEBERG, f"{catalog}:{place.name}")
    folder, _, name = loaded.metadata_location.rpartition("/")
    _take_iceberg(found, OutputDirectory(folder), name)
    return found


def _take_delta(found: TableCommits, directory: OutputDirectory) -> None:
    """Take the last batch of each writer, by the commits that are still there as JSON."""
    paths = sorted(directory.relative(each) for each in directory.files(DELTA_LOG))
    for path in (path for path in paths if _DELTA_COMMIT.fullmatch(path)):
        for action in _json_lines(directory, path):
            writer = action.get("txn")
            if isinstance(writer, dict) and type(writer.get("version")) is int:
                at_ms = writer.get("lastUpdated")
                known_ms = at_ms if isinstance(at_ms, int) else None
                found.batches[str(writer.get("appId"))] = writer["version"], known_ms


def _json_lines(directory: OutputDirectory, path: str) -> Iterator[dict[str, Any]]:
    data = directory.read(path) or b""
    try:
        for line in data.splitlines():
            if line.strip():
                yield json.loads(line)
    except ValueError as error:
        location = directory.location(path)
        raise StatePositionError(f"{location} is damaged ({error}): restore it") from None


def _newest_metadata(directory: OutputDirectory) -> str | None:
    numbers = [
        (int(match[1] or match[2]), name)
        for name in directory.names(_METADATA)
        if (match := _ICEBERG_METADATA.fullmatch(name))
    ]
    return f"{_METADATA}/{max(numbers)[1]}" if numbers else None


def _take_iceberg(found: TableCommits, directory: OutputDirectory, path: str) -> None:
    """Take what the snapshots that the table's rows come from say, the newest of each writer."""
    data = directory.read(path) or b""
    try:
        metadata = json.loads(data)
        by_id = {each["snapshot-id"]: each for each in metadata.get("snapshots") or ()}
        snapshot = by_id.get(metadata.get("current-snapshot-id"))
        seen: set[int] = set()
        while snapshot is not None and snapshot["snapshot-id"] not in seen:
            seen.add(snapshot["snapshot-id"])
            _take_snapshot(found, snapshot.get("summary") or {}, snapshot.get("timestamp-ms"))
            snapshot = by_id.get(snapshot.get("parent-snapshot-id"))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        location = directory.location(path)
        raise StatePositionError(
            f"{location} is damaged ({type(error).__name__}: {error}): restore it from a copy"
        ) from None


def _take_snapshot(found: TableCommits, summary: Mapping[str, str], at_ms: int | None) -> None:
    """Take the summary of a snapshot, unless a newer one has said the same."""
    if _OWN in summary and not found.positions:
        own = json.loads(summary[_OWN])
        found.positions = [
            KeptPosition(
                *(found.keeper, found.path, None, topic, int(partition), offset, at_ms),
                topic_id=(own.get("topic_ids") or {}).get(topic),
            )
            for topic, partitions in sorted(own["next_offsets"].items())
            for partition, offset in partitions.items()
        ]
    if _QUERY_ID in summary and _EPOCH_ID in summary:
        found.batches.setdefault(summary[_QUERY_ID], (int(summary[_EPOCH_ID]), at_ms))
    for name, value in summary.items():
        if name.startswith(_CONNECT):
            offsets = {int(number): int(offset) for number, offset in json.loads(value).items()}
            found.control_offsets.setdefault(name.removeprefix(_CONNECT), (offsets, at_ms))
