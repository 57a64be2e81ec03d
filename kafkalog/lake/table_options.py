"""The options that say which tables records go to, and how their files are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from kafkalog.errors import ConflictingOptionsError, OptionError, RefusedOptionError
from kafkalog.lake.layout import TARGET_FILE_BYTES, Compression, PartitionBy, TableLayout
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.option_values import chosen
from kafkalog.views.options.parameter_types import Size
from kafkalog.words import size_text

_LEVEL = "--compression-level"


@dataclass(frozen=True, slots=True)
class TableRequest:
    """The options, as they were given."""

    catalog: str | None = None
    table: str | None = None
    table_per_topic: bool = False
    partition_by: tuple[str, ...] = ()
    target_file_size: int = TARGET_FILE_BYTES
    compression: str = Compression.ZSTD.value
    compression_level: int | None = None

    def layout(self) -> TableLayout:
        """Return how files are written. Raises OptionError for options that do not fit."""
        if self.table is not None and self.table_per_topic:
            raise ConflictingOptionsError("--table", "--table-per-topic")
        partition_by = tuple(
            dict.fromkeys(chosen("--partition-by", PartitionBy, each) for each in self.partition_by)
        )
        if {PartitionBy.DAY, PartitionBy.HOUR} <= set(partition_by):
            raise ConflictingOptionsError("--partition-by day", "--partition-by hour")
        compression = chosen("--compression", Compression, self.compression)
        self._refuse_level()
        # From Python it can be anything.
        given: object = self.target_file_size
        if not isinstance(given, int) or given < 1:
            raise OptionError("--target-file-size", given, "a number of bytes")
        return TableLayout(partition_by, self.target_file_size, compression, self.compression_level)

    def _refuse_level(self) -> None:
        level, codec = self.compression_level, self.compression
        if level is None:
            return
        from pyarrow import Codec

        if codec == Compression.NONE.value or not Codec.supports_compression_level(codec):
            raise RefusedOptionError(_LEVEL, f"--compression {codec} has no levels")
        least, most = (
            Codec.minimum_compression_level(codec),
            Codec.maximum_compression_level(codec),
        )
        if not least <= level <= most:
            raise OptionError(_LEVEL, level, f"a level of {codec}, from {least} to {most}")


def table_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, received as `tables`."""
    return shared.settings_options(
        TableRequest,
        "tables",
        shared.catalog_option("Write Iceberg tables to this catalog instead of a directory."),
        click.option(
            "--table",
            metavar="NAME",
            help="Write to this table of a catalog in place of ingested_records: namespace.name "
            "for Iceberg, catalog.schema.name for Delta.",
        ),
        click.option(
            "--table-per-topic", is_flag=True, help="Write each topic to a table with its name."
        ),
        click.option(
            "--partition-by",
            type=shared.choice_of(PartitionBy),
            multiple=True,
            help="Partition new tables by topic, or by the day or hour of the timestamp in UTC; "
            "repeatable, the outer one first.",
        ),
        click.option(
            "--target-file-size",
            metavar="SIZE",
            type=Size(),
            default=size_text(TARGET_FILE_BYTES).replace(" ", ""),
            show_default=True,
            help="Begin another file when one has reached this size.",
        ),
        click.option(
            "--compression",
            type=shared.choice_of(Compression),
            default=Compression.ZSTD.value,
            show_default=True,
            help="Codec of the Parquet files.",
        ),
        click.option(
            "--compression-level",
            metavar="N",
            type=int,
            help="Level of the codec; its own default without it.",
        ),
    )(function)
