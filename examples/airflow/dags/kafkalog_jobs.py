"""What the DAGs of kafkalog have in common: where things are, and what an exit code means.

The Airflow variable `kafkalog` holds the paths (README.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import RetryDecision, RetryPolicy

LOGS = "{{ var.json.kafkalog.logs }}"
OUTPUT = "{{ var.json.kafkalog.output }}"
_PACKAGE = "{{ var.json.kafkalog.package }}"
# Never runs at once: of two that write one table, one would be in vain.
ONE_AFTER_ANOTHER = {"max_active_runs": 1}

_FINDINGS, _WRONG_ARGUMENTS = 1, 2
_EXIT_CODE = re.compile(r"Error code is: (\d+)\.")
# The last line of every job that has done its work.
_DONE = re.compile(r"^tables: ", re.MULTILINE)


class RetryIfItCanHelp(RetryPolicy):
    """Findings and wrong arguments are the same the next time. An unreadable input (3) can be a
    disk or an object store that is back in a minute, and any other code is Spark's own failure."""

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Any = None
    ) -> RetryDecision:
        said = str(exception)
        code = exit_code(said)
        # Spark ends with 1 as well where it fails itself: then the job's last line is missing.
        if code == _FINDINGS and _DONE.search(said):
            return RetryDecision.fail("the job is done, and has findings")
        if code == _WRONG_ARGUMENTS:
            return RetryDecision.fail("wrong arguments")
        return RetryDecision.retry(reason=f"exit code {code}")


def exit_code(said: str) -> int | None:
    """The exit code in what SparkSubmitOperator raises."""
    found = _EXIT_CODE.search(said)
    return int(found[1]) if found else None


def kafkalog_job(job: str, arguments: Sequence[str] | str, **others: Any) -> SparkSubmitOperator:
    """A task that runs one of kafkalog's jobs by spark-submit, with its arguments, templates
    among them."""
    return SparkSubmitOperator(
        task_id=job,
        application=f"{_PACKAGE}/jobs/{job}.py",
        application_args=arguments if isinstance(arguments, str) else list(arguments),
        properties_file=f"{_PACKAGE}/conf/spark-defaults.conf",
        # Spark would log each of its steps, a thousand lines, in the task's log.
        conf={
            "spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile="
            f"{_PACKAGE}/conf/log4j2.properties"
        },
        name=f"kafkalog {job}",
        retries=2,
        retry_delay=timedelta(minutes=5),
        retry_policy=RetryIfItCanHelp(),
        **others,
    )
