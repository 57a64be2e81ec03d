"""What a job does with the answer to its question: it writes the tables, shows some rows, says the
rest, and ends with an exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from pyspark.sql import SparkSession

from kafkalog.exit_codes import ExitCode
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.jobs.tables.written_tables import replace_rows
from kafkalog.spark.tables import show_rows
from kafkalog.views.engine import Rows

_NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})


def saved(
    spark: SparkSession,
    job: JobSettings,
    inputs: Sequence[str],
    tables: Mapping[str, Rows],
    shown: Mapping[str, Sequence[str]] = _NOTHING,
) -> list[str]:
    """Write tables of rows about some inputs, and print the columns in `shown` of those that have
    rows; return the paths of the tables. Raises what `replace_rows` raises."""
    paths = [replace_rows(job, table, inputs, rows) for table, rows in tables.items()]
    for table, columns in shown.items():
        if not tables[table].is_empty:
            show_rows(spark, table, tables[table], columns, job.show)
    return paths


def ended(
    job: JobSettings, words: Iterable[str], paths: Iterable[str], *, has_findings: bool
) -> ExitCode:
    """Print the sentences of the answer and where its tables are; return the exit code."""
    print(*words, f"tables: {' '.join(paths)}", sep="\n")
    return job.exit_code(has_findings=has_findings)
