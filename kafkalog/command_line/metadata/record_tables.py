"""What `kafkalog metadata --by record` prints: what fills the log of a cluster's metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafkalog.command_line.findings_table import table_rows, write_words
from kafkalog.command_line.terminal import printed_columns, write_table
from kafkalog.coordination.metadata.image import Moment
from kafkalog.exit_codes import ExitCode
from kafkalog.inspection.metadata.copies import best_copy, metadata_copies
from kafkalog.inspection.metadata.record_usage import COLUMNS, record_usage
from kafkalog.words import size_text, time_text

_TIMES = ("hour_ms", "first_timestamp_ms", "last_timestamp_ms", "busiest_hour_ms")
_TEXTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(_TIMES, time_text),
    "bytes": size_text,
    "share": lambda share: f"{share:.1%}",
}


def write_usage(paths: Sequence[str], by: str, until: Moment, table_format: str) -> ExitCode:
    """Print the records of the best copy by type and broker, or in each hour. Raises LogDirError
    for paths without a copy."""
    columns = printed_columns(COLUMNS[by])
    usage = record_usage(best_copy(metadata_copies(paths)).log, until)
    rows = table_rows(usage.rows(by), columns, table_format)
    write_table(columns, rows, table_format, texts=_TEXTS)
    write_words(usage.words(), table_format)
    return ExitCode.DONE if usage.damage is None else ExitCode.UNREADABLE_INPUT
