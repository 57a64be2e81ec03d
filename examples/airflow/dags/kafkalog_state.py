"""Every night: the latest committed value of each key of a topic, as it was at midnight."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable
from kafkalog_jobs import LOGS, ONE_AFTER_ANOTHER, OUTPUT, kafkalog_job

with DAG(
    "kafkalog_state",
    description="The state of topics at the end of each day",
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    tags=["kafkalog"],
    **ONE_AFTER_ANOTHER,
):
    kafkalog_job(
        "reconstruct_state",
        [
            LOGS,
            "--topic-pattern",
            "{{ var.json.kafkalog.state_topics }}",
            "--output-dir",
            f"{OUTPUT}/state/{{{{ data_interval_end | ds }}}}",
            "--as-of",
            "{{ data_interval_end | ts }}",
            "--format",
            "parquet",
            "--show",
            "0",
            # The task fails where the cleaner may have taken what the day before still had.
            "--fail-on-findings",
        ],
    )
