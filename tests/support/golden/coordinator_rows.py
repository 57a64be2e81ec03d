"""Rows of the coordinators' views, read from the log directories of a fixture."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafkalog.schemas import table_fields
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups
from kafkalog.views.reading.reading import read_segment

Row = dict[str, Any]


def _log_dirs(logs: Path) -> list[str]:
    return sorted(str(path.parent) for path in logs.rglob("meta.properties"))


def coordinator_rows(view: str, logs: Path) -> Iterator[Row]:
    options = read_options({"paths": json.dumps(_log_dirs(logs)), "view": view})
    columns = tuple(field["name"] for field in table_fields(view))
    for group in planned_groups(options):
        for read in group:
            assert isinstance(read, SegmentRead)
            for batch in read_segment(read, options, columns):
                yield from batch.to_pylist()
