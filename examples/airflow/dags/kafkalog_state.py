"""The latest committed value of each key, as it was at midnight.

Every night, job `reconstruct-state` writes the tables `state` and `state_partitions` to
`OUTPUT/state/DAY/`, as Parquet, where DAY begins at that midnight.

**If it fails:** the cleaner may have removed values that midnight still had; column `is_exact` of
`state_partitions` says of which partitions. Or a record has a time of the future, which the task's
log names; the state includes it.

**A backfill** makes the days of the past. **A run by hand** can be limited to some `topics`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable
from kafkalog_jobs import FOR_EACH_DAG, kafkalog_job, named, names_param

FOLDER = "{{ var.json.kafkalog.output }}/state/{{ data_interval_end | ds }}"


def state_arguments(
    kafkalog: dict[str, Any], params: dict[str, Any], day: str, end: datetime
) -> list[str]:
    """Return the arguments of the job."""
    return [
        kafkalog["logs"],
        *named("--topic", params["topics"] or kafkalog["state_topics"]),
        *("--output-dir", f"{kafkalog['output']}/state/{day}"),
        *("--as-of", end.isoformat()),
        *("--format", "parquet", "--show", "0"),
        # The task fails where the cleaner may have taken what the day before still had.
        "--fail-on-findings",
    ]


with DAG(
    "kafkalog_state",
    description="The state of topics at the end of each day",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    params={"topics": names_param("topics", "those of the variable `kafkalog`, as `state_topics`")},
    user_defined_macros={"state_arguments": state_arguments},
    **FOR_EACH_DAG,
):
    kafkalog_job(
        "reconstruct_state",
        "{{ state_arguments(var.json.kafkalog, params, data_interval_end | ds,"
        " data_interval_end) }}",
        folder=FOLDER,
        outlet=Asset("kafkalog_state"),
    )
