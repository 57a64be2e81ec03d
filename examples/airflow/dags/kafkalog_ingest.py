"""New records of topics, each exactly once.

Every hour, job `ingest-topics` adds what is new to the Delta table
`OUTPUT/ingest/ingested_records`. A run takes what is new up to the end of its interval, and finds
nothing new where a later run was there first.

**If it fails:** records were deleted before they were read, a log is not the one that was read
before, or a record has a time of the future (it is read all the same). The task's log names the
partitions; `kafkalog status TABLE LOG_DIR` shows what waits, and why.

**A backfill** writes its intervals once more in place of what the table has of them, say after
damage that was skipped has been repaired. **A run by hand** can be limited to some `topics`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable
from kafkalog_jobs import FOR_EACH_DAG, kafkalog_job, named, names_param


def ingest_arguments(
    kafkalog: dict[str, Any], params: dict[str, Any], run_type: str, start: datetime, end: datetime
) -> list[str]:
    """Return the arguments of the job."""
    arguments = [kafkalog["logs"], "--output-dir", f"{kafkalog['output']}/ingest"]
    arguments += named("--topic", params["topics"] or kafkalog.get("topics", []))
    if run_type == "backfill":
        arguments += ["--from-time", start.isoformat()]
    return [*arguments, "--until-time", end.isoformat(), "--fail-on-findings", "--show", "0"]


with DAG(
    "kafkalog_ingest",
    description="New records of topics, each exactly once",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
    params={
        "topics": names_param(
            "topics", "those of the variable `kafkalog`, as `topics`; without them all"
        )
    },
    user_defined_macros={"ingest_arguments": ingest_arguments},
    **FOR_EACH_DAG,
):
    kafkalog_job(
        "ingest_topics",
        "{{ ingest_arguments(var.json.kafkalog, params, dag_run.run_type.value,"
        " data_interval_start, data_interval_end) }}",
        folder="{{ var.json.kafkalog.output }}/ingest",
        outlet=Asset("kafkalog_ingested_records"),
    )
