"""Lag and status of every consumer group, each five minutes of the hour.

Every hour, job `lag-history` writes the tables `lag_history` and `group_generations` of the hour
that has just ended to `OUTPUT/lag/HOUR/`, as Parquet.

**If it fails:** a group has stopped or stalled with lag, or damage hides commits. The task's log
counts the groups by status; column `reason` of `lag_history` says why.

**A backfill** makes the hours of the past, as far back as the offsets topic and the logs go. **A
run by hand** can be limited to some `groups` and `topics`, and have rows at other moments, as
`every` says.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable, Param
from kafkalog_jobs import FOR_EACH_DAG, kafkalog_job, named, names_param

FOLDER = "{{ var.json.kafkalog.output }}/lag/{{ data_interval_start | ts_nodash }}"


def lag_arguments(
    kafkalog: dict[str, Any], params: dict[str, Any], folder: str, start: datetime, end: datetime
) -> list[str]:
    """Return the arguments of the job."""
    return [
        kafkalog["logs"],
        *("--output-dir", f"{kafkalog['output']}/lag/{folder}"),
        *("--from-time", start.isoformat()),
        *("--until-time", end.isoformat()),
        *("--every", params["every"]),
        *named("--group", params["groups"]),
        *named("--topic", params["topics"] or kafkalog.get("topics", [])),
        *("--format", "parquet", "--show", "0"),
        # The task fails where a group has stopped with lag.
        "--fail-on-findings",
    ]


with DAG(
    "kafkalog_lag_history",
    description="Lag and status of consumer groups",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
    params={
        "groups": names_param("groups", "all"),
        "topics": names_param(
            "topics", "those of the variable `kafkalog`, as `topics`; without them all"
        ),
        "every": Param(
            "5m",
            type="string",
            pattern=r"^\d+[smhd]$",
            title="Every",
            description_md="How far apart the rows are: `30s`, `5m`, `2h`, `1d`.",
        ),
    },
    user_defined_macros={"lag_arguments": lag_arguments},
    **FOR_EACH_DAG,
):
    kafkalog_job(
        "lag_history",
        "{{ lag_arguments(var.json.kafkalog, params, data_interval_start | ts_nodash,"
        " data_interval_start, data_interval_end) }}",
        folder=FOLDER,
        outlet=Asset("kafkalog_lag_history"),
    )
