"""New records of topics in the tables of an Iceberg catalog, each exactly once.

Every hour, `kafkalog export` adds what is new to the catalog that the variable `kafkalog` names as
`catalog`: to a table for each topic, or by the options in `topics_file`. It needs neither Spark nor
Java; pyiceberg's configuration on the worker has the catalog's address.

**If it fails:** records were deleted before they were read, a log is not the one that was read
before, or a record has a time of the future (it is read all the same). Another writer's commit at
the same time fails the run too, which the next try mends.

**A run by hand** can be limited to some `topics`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable
from kafkalog_jobs import FOR_EACH_DAG, KafkalogCommand, named, names_param, retried


def export_arguments(kafkalog: dict[str, Any], params: dict[str, Any], end: datetime) -> list[str]:
    """Return the arguments of the command."""
    arguments = ["export", kafkalog["logs"], "--format", "iceberg", "--show", "0"]
    arguments += ["--catalog", kafkalog["catalog"], "--until-time", end.isoformat()]
    topics = params["topics"] or kafkalog.get("topics", [])
    if kafkalog.get("topics_file") and not params["topics"]:
        arguments += ["--topics-file", kafkalog["topics_file"]]
    else:
        arguments += ["--table-per-topic", *named("--topic", topics)]
    return [*arguments, "--fail-on-findings"]


with DAG(
    "kafkalog_iceberg",
    description="New records of topics in an Iceberg catalog, each exactly once",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
    params={
        "topics": names_param(
            "topics", "those of the variable `kafkalog`, as `topics_file` or `topics`"
        )
    },
    user_defined_macros={"export_arguments": export_arguments},
    **FOR_EACH_DAG,
):
    KafkalogCommand(
        task_id="export",
        arguments="{{ export_arguments(var.json.kafkalog, params, data_interval_end) }}",
        outlets=[Asset("kafkalog_iceberg")],
        **retried(),
    )
