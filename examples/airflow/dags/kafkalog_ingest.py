"""Every hour: what is new in the topics, into the Delta table `ingested_records`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable
from kafkalog_jobs import ONE_AFTER_ANOTHER, kafkalog_job


def ingest_arguments(
    kafkalog: dict[str, str], run_type: str, start: datetime, end: datetime
) -> list[Any]:
    """A scheduled run takes what is new up to the end of its interval, and is done at once where a
    run after it was there first. A backfill writes its interval once more, say after damage that
    was skipped has been repaired."""
    arguments = [kafkalog["logs"], "--output-dir", f"{kafkalog['output']}/ingest"]
    if run_type == "backfill":
        arguments += ["--from-time", start.isoformat()]
    return [*arguments, "--until-time", end.isoformat(), "--fail-on-findings", "--show", "0"]


with DAG(
    "kafkalog_ingest",
    description="New records of topics, each exactly once",
    schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    # The first run takes all that is there; later ones what the missed ones would have.
    catchup=False,
    # The arguments come from a function, as a list.
    render_template_as_native_obj=True,
    user_defined_macros={"ingest_arguments": ingest_arguments},
    tags=["kafkalog"],
    **ONE_AFTER_ANOTHER,
):
    kafkalog_job(
        "ingest_topics",
        "{{ ingest_arguments(var.json.kafkalog, dag_run.run_type.value,"
        " data_interval_start, data_interval_end) }}",
    )
