"""Is every byte of the logs sound?

Every night at 03:00 UTC, job `validate-checksums` checks each batch of each segment. Its tables
`checksum_report` and `faults` are in `OUTPUT/checksums/DAY/`.

**If it fails:** the log of task `no_faults` names each damaged range, with its position and its
kind. Do not restart that broker before you have read kafkalog's page *A damaged disk*.

**A run by hand** can be limited to some log directories, by the parameter `paths`.
"""

from __future__ import annotations

import json
from typing import Any

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable, ObjectStoragePath, task
from airflow.sdk.exceptions import AirflowFailException
from kafkalog_jobs import FOR_EACH_DAG, kafkalog_job, names_param

# A folder for each day: a run that is repeated replaces its own tables and no others.
FOLDER = "{{ var.json.kafkalog.output }}/checksums/{{ data_interval_end | ds }}"
_SHOWN = 20


def checksum_arguments(kafkalog: dict[str, Any], params: dict[str, Any], day: str) -> list[str]:
    """Return the arguments of the job."""
    paths = params["paths"] or [kafkalog["logs"]]
    folder = f"{kafkalog['output']}/checksums/{day}"
    return [*paths, "--output-dir", folder, "--format", "json", "--show", "0"]


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
    doc_md=__doc__,
    # The interval's end is when it runs: the check is of the disks at that time.
    schedule=CronDataIntervalTimetable("0 3 * * *", timezone="UTC"),
    params={"paths": names_param("paths", "those of the variable `kafkalog`, as `logs`")},
    user_defined_macros={"checksum_arguments": checksum_arguments},
    **FOR_EACH_DAG,
):
    checked = kafkalog_job(
        "validate_checksums",
        "{{ checksum_arguments(var.json.kafkalog, params, data_interval_end | ds) }}",
        folder=FOLDER,
        outlet=Asset("kafkalog_checksums"),
    )
    checked >> no_faults(f"{FOLDER}/faults")
