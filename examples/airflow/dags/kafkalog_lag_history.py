"""Every hour: the lag and the status of every consumer group, each five minutes of the hour."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable
from kafkalog_jobs import LOGS, ONE_AFTER_ANOTHER, OUTPUT, kafkalog_job

with DAG(
    "kafkalog_lag_history",
    description="Lag and status of consumer groups",
    schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    # An hour that was missed is a backfill: the offsets topic has it, as far back as it goes.
    catchup=False,
    tags=["kafkalog"],
    **ONE_AFTER_ANOTHER,
):
    kafkalog_job(
        "lag_history",
        [
            LOGS,
            "--output-dir",
            f"{OUTPUT}/lag/{{{{ data_interval_start | ts_nodash }}}}",
            "--from-time",
            "{{ data_interval_start | ts }}",
            "--until-time",
            "{{ data_interval_end | ts }}",
            "--every",
            "5m",
            "--format",
            "parquet",
            "--show",
            "0",
            # The task fails where a group has stopped with lag.
            "--fail-on-findings",
        ],
    )
