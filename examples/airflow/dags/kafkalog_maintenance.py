"""Large files in place of small ones, and no files that belong to no table.

Every night at 02:00 UTC, `kafkalog optimize` and then `kafkalog vacuum` work on each table that the
variable `kafkalog` lists as `maintained`: a directory of Parquet files or of an Iceberg table, or
`{"catalog": "lake", "table": "raw.records"}`. Delta tables have OPTIMIZE and VACUUM of their own.

**If it fails:** the log names the table and what is wrong with it. An export that writes to a table
of Parquet files at the same time leaves it as it was, and the next try goes on.

**A run by hand** can be limited to some `tables`, which are directories, or `CATALOG:TABLE`.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, get_current_context, task
from kafkalog_jobs import FOR_EACH_DAG, KafkalogCommand, names_param, retried

OLDER_THAN = "7d"


def table_arguments(given: str | dict[str, str]) -> list[str]:
    """Return the arguments that name a table."""
    if isinstance(given, str):
        catalog, _, table = given.partition(":")
        if not table or "/" in given:
            return [given]
        given = {"catalog": catalog, "table": table}
    return ["--catalog", given["catalog"], "--table", given["table"]]


@task
def commands(command: str, *options: str) -> list[list[str]]:
    """Return the arguments of a command for each table."""
    context: Any = get_current_context()
    kafkalog = context["var"]["json"].kafkalog
    tables = context["params"]["tables"] or kafkalog.get("maintained", [])
    return [[command, *table_arguments(each), *options] for each in tables]


with DAG(
    "kafkalog_maintenance",
    description="Large files in place of small ones, and none that belong to no table",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("0 2 * * *", timezone="UTC"),
    params={"tables": names_param("tables", "those of the variable `kafkalog`, as `maintained`")},
    **FOR_EACH_DAG,
):
    optimized = KafkalogCommand.partial(task_id="optimize", **retried()).expand(
        arguments=commands.override(task_id="tables_to_optimize")("optimize")
    )
    vacuumed = KafkalogCommand.partial(task_id="vacuum", **retried()).expand(
        arguments=commands.override(task_id="tables_to_vacuum")(
            "vacuum", "--older-than", OLDER_THAN
        )
    )
    optimized >> vacuumed
