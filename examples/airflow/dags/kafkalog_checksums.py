"""Every night: is every byte of the logs sound? A task that fails shows the damaged ranges."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable, ObjectStoragePath, task
from airflow.sdk.exceptions import AirflowFailException
from kafkalog_jobs import LOGS, ONE_AFTER_ANOTHER, OUTPUT, kafkalog_job

# A folder for each day: a run that is repeated replaces its own tables and no others.
FOLDER = f"{OUTPUT}/checksums/{{{{ data_interval_end | ds }}}}"
_SHOWN = 20


@task(retries=0)
def no_faults(folder: str) -> int:
    """Fail with the faults, if there are any: each damaged range, where it is and why."""
    rows = [
        json.loads(line)
        for path in ObjectStoragePath(folder).glob("part-*.json")
        for line in path.read_text().splitlines()
    ]
    errors = [row for row in rows if row["severity"] == "error"]
    if errors:
        places = [f"{row['file']}: position {row['position']}: {row['kind']}" for row in errors]
        shown = "\n".join(sorted(places)[:_SHOWN])
        raise AirflowFailException(f"{len(errors)} damaged ranges in {folder}:\n{shown}")
    return len(rows)


with DAG(
    "kafkalog_checksums",
    description="Which bytes of the logs are sound",
    # The interval's end is when it runs: the check is of the disks at that time.
    schedule=CronDataIntervalTimetable("0 3 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    # The disks of the past cannot be checked any more.
    catchup=False,
    tags=["kafkalog"],
    **ONE_AFTER_ANOTHER,
):
    checked = kafkalog_job(
        "validate_checksums", [LOGS, "--output-dir", FOLDER, "--format", "json", "--show", "0"]
    )
    checked >> no_faults(f"{FOLDER}/faults")
