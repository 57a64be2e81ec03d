"""The manifest of a directory of Parquet files: which files are the table, and what it holds.

Rules: docs/ingest.md F650 to F653; reasons: docs/decisions/0029.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from kafkalog.errors import StatePositionError
from kafkalog.lake.decoded_columns import Field
from kafkalog.lake.layout import Compression, PartitionBy, TableLayout
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.written_file import WrittenFile
from kafkalog.storage.log_dir.table_formats import MANIFEST
from kafkalog.views.options.offset_options import by_partition, by_topic
from kafkalog.views.planning.ingest_positions import IngestPositions

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class TableManifest:
    """What a table consists of after one commit, which `commit_id` tells from any other.

    `decoded` are the columns that the table has of decoded keys and values. `removed` are the files
    that the commit took out of the table.
    """

    commit_id: str
    positions: IngestPositions
    layout: TableLayout
    decoded: tuple[Field, ...] = ()
    files: tuple[WrittenFile, ...] = ()
    removed: tuple[str, ...] = ()

    def places(self) -> Iterator[str]:
        """Yield every path at which a file of the table can be."""
        for file in self.files:
            yield file.path
            if file.pending_path is not None:
                yield file.pending_path

    def settled_files(self) -> list[WrittenFile]:
        """Return the files as the next commit names them: each where it is by then."""
        return [
            file if file.pending_path is None else replace(file, pending_path=None)
            for file in self.files
        ]

    def to_json(self) -> str:
        """Return the text of the manifest file, a line for each of the table's files."""
        head = {
            "format_version": FORMAT_VERSION,
            "commit_id": self.commit_id,
            "run": self.positions.run,
            "token": self.positions.token,
            "positions": json.loads(self.positions.to_json()),
            "layout": asdict(self.layout),
            "decoded": self.decoded,
            "removed": self.removed,
        }
        members = [f"{json.dumps(name)}: {_json(each)}" for name, each in head.items()]
        files = ",\n".join(_json(_file_json(each)) for each in self.files)
        return "{" + ",\n".join([*members, f'"files": [\n{files}\n]']) + "}\n"


def read_manifest(directory: OutputDirectory) -> TableManifest | None:
    """Return the manifest of a table, None without one.

    Raises StatePositionError for a file that this version cannot read.
    """
    data = directory.read(MANIFEST)
    if data is None:
        return None
    path = directory.location(MANIFEST)
    try:
        found = json.loads(data)
        if found["format_version"] > FORMAT_VERSION:
            raise StatePositionError(
                f"{path} has format version {found['format_version']}, this kafkalog knows "
                f"{FORMAT_VERSION}: use a newer one"
            )
        return _manifest(found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StatePositionError(
            f"{path} is damaged ({type(error).__name__}: {error}): restore it from a copy, or "
            "write to another directory"
        ) from None


def _manifest(found: Mapping[str, Any]) -> TableManifest:
    positions = IngestPositions.from_json(json.dumps(found["positions"]))
    if positions is None:
        raise ValueError("positions are of another program")
    layout = found["layout"]
    return TableManifest(
        commit_id=found["commit_id"],
        positions=positions,
        layout=TableLayout(
            partition_by=tuple(map(PartitionBy, layout["partition_by"])),
            target_file_bytes=layout["target_file_bytes"],
            compression=Compression(layout["compression"]),
            compression_level=layout["compression_level"],
        ),
        decoded=tuple(found["decoded"]),
        files=tuple(
            WrittenFile(**{**each, "rows_of": by_partition(each["rows_of"])})
            for each in found["files"]
        ),
        removed=tuple(found["removed"]),
    )


def _file_json(file: WrittenFile) -> dict[str, Any]:
    found = {**asdict(replace(file, rows_of={})), "rows_of": by_topic(file.rows_of)}
    return {name: each for name, each in found.items() if name != "table"}


def _json(value: object) -> str:
    return json.dumps(value, default=_enum_value)


def _enum_value(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{value!r} has no form in JSON")
