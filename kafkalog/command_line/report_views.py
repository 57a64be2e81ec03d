"""The views that a report asks for, read by processes of this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafkalog.command_line.views import Reduction, reduced_view
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.options.options import Mode, read_options


@dataclass(frozen=True, slots=True)
class LocalViews:
    """Reads views of these logs under these paths (`kafkalog.report.reading.views.Views`).
    `on_done` is called with the number of bytes that a task has read."""

    log_dirs: Sequence[str]
    logs: list[PartitionLog]
    processes: int
    on_done: Callable[[int], None]

    def table(
        self,
        view: str,
        columns: Sequence[str],
        reduce: Reduction[pa.RecordBatch],
        schema: pa.Schema,
        **options: str | None,
    ) -> pa.Table:
        """Return what `reduce` makes of the rows of each task."""
        given: dict[str, Any] = {"subscribe": "*", **options}
        texts = {name: value for name, value in given.items() if value is not None}
        paths = json.dumps(list(self.log_dirs))
        batches = reduced_view(
            read_options({"paths": paths, "view": view, "mode": Mode.PERMISSIVE.value, **texts}),
            tuple(columns),
            reduce,
            processes=self.processes,
            found=self.logs,
            on_done=self.on_done,
        )
        return pa.Table.from_batches(batches, schema)
