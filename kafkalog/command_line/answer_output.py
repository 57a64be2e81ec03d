"""Where a command puts its answer: on stdout, or in --output-dir as the tables that the job of the
same question writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kafkalog.command_line.terminal import TABLE_FORMATS, print_text, printed_column_options
from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.storage.files.uris import absolute_path, is_remote
from kafkalog.views.options import click_options as shared

if TYPE_CHECKING:
    from kafkalog.lake.formats.answer_tables import AnswerTables
    from kafkalog.storage.partition_log import PartitionLog
    from kafkalog.views.engine import Rows

_TEXT, _JSON, _CSV = TABLE_FORMATS
_PARQUET, _DELTA = _ONLY_SAVED = ("parquet", "delta")
SAVED_FORMATS = (*_ONLY_SAVED, _JSON, _CSV)


@dataclass(frozen=True, slots=True)
class AnswerOutput:
    """--format and --output-dir, as they were given."""

    answer_format: str | None
    output_dir: str

    @property
    def table_format(self) -> str:
        """The format of what the command prints: with --output-dir that is text."""
        if self.output_dir:
            return _TEXT
        if self.answer_format in _ONLY_SAVED:
            raise RefusedOptionError("--format", f"{self.answer_format} only with --output-dir")
        return self.answer_format or _TEXT

    def tables(
        self, names: Iterable[str], inputs: Sequence[str], directories: Iterable[str]
    ) -> AnswerTables | None:
        """Return where the tables with these names go, None without --output-dir. `inputs` are the
        paths whose rows they have, globs resolved; `directories` are those that are read. Call it
        before the work: raises what `AnswerTables.refuse` raises."""
        if not self.output_dir:
            return None
        from kafkalog.lake.formats.answer_tables import AnswerTables

        if self.answer_format == _TEXT:
            allowed = f"{' or '.join(SAVED_FORMATS)} with --output-dir"
            raise OptionError("--format", _TEXT, allowed)
        place = self.output_dir if is_remote(self.output_dir) else absolute_path(self.output_dir)
        found = AnswerTables(place, self.answer_format or _PARQUET, inputs)
        found.refuse(names, directories)
        return found

    def tables_of_logs(
        self,
        names: Iterable[str],
        paths: Sequence[str],
        logs: Sequence[PartitionLog],
        directories: Iterable[str] = (),
    ) -> AnswerTables | None:
        """Return the same, of logs under some paths; `directories` are read beside them."""
        if not self.output_dir:
            return None
        from kafkalog.storage.log_dir.log_dir import input_entries
        from kafkalog.storage.log_dir.read_directories import directories_read

        entries = [entry for path in paths for entry in input_entries(path)]
        files = (entry.path for entry in entries if not entry.is_directory)
        read = [*directories_read(entries, logs), *files, *directories]
        return self.tables(names, [entry.path for entry in entries], read)


def save_tables(place: AnswerTables | None, rows: Mapping[str, Rows]) -> None:
    """Write the rows of each table and name the tables in the last line; nothing without a
    place."""
    if place is not None:
        name_tables([place.replace(table, each.table) for table, each in rows.items()])


def name_tables(paths: Sequence[str]) -> None:
    """Write the last line, with the tables that are written, if there are any."""
    if paths:
        print_text(f"tables: {' '.join(paths)}")


def answer_output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --output-dir and --format, received as `output`, and --columns and --wide."""
    formats = click.option(
        "--format",
        "answer_format",
        type=click.Choice((*TABLE_FORMATS, *_ONLY_SAVED)),
        show_default=f"{_TEXT}; with --output-dir {_PARQUET}",
        help="Text for people, JSON lines, or CSV with a header; or the format of the tables in "
        "--output-dir; delta, which keeps the rows of other inputs, needs the extra "
        "kafkalog[deltalake].",
    )
    directory = shared.output_dir_option(
        "Write the tables that the job of this question writes to this directory: a local path, or "
        "a URI such as s3://bucket/path.",
        required=False,
    )
    options = shared.settings_options(AnswerOutput, "output", formats, directory)
    return options(printed_column_options(function))
