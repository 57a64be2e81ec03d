"""What the DAGs of kafkalog have in common: how a job runs, and what becomes of its exit code.

The Airflow variable `kafkalog` holds the paths. Where the environment of Airflow's processes has
KAFKALOG_COMMAND, jobs run by that command on the worker's machine; without it by spark-submit, on
what the connection `spark_default` names (README.md).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import Asset, BaseOperator, Param
from airflow.sdk.exceptions import AirflowException, AirflowFailException

COMMAND = os.environ.get("KAFKALOG_COMMAND")
# What every DAG is given. The arguments of a job come from a function, as a list.
FOR_EACH_DAG: dict[str, Any] = {
    "start_date": datetime(2026, 1, 1, tzinfo=UTC),
    # A run that was missed is a backfill.
    "catchup": False,
    # Of two runs that write one table at once, one would be in vain.
    "max_active_runs": 1,
    "render_template_as_native_obj": True,
    "tags": ["kafkalog"],
    "default_args": {
        # Airflow shows and filters by it: put your team here.
        "owner": "kafkalog",
        # A disk that hangs or a cluster without a free core is a failure in the end.
        "execution_timeout": timedelta(hours=6),
    },
}
_PACKAGE = "{{ var.json.kafkalog.package }}"
# Delta's jar for the Spark of the workers, where that is another than the settings name.
_DELTA_PACKAGE = "{{ var.json.kafkalog.get('delta_package', '') }}"
# Exit codes of jobs that are the same the next time (docs/reference/jobs.md). After any other, a
# disk or an object store may be back in a minute.
_FINAL = {1: "findings, which the log shows", 2: "wrong arguments"}


def names_param(what: str, otherwise: str) -> Param:
    """A list of names that a run can be limited to."""
    return Param(
        [],
        type="array",
        items={"type": "string", "minLength": 1},
        title=what.capitalize(),
        description_md=f"Only these {what}, a line each. Empty: {otherwise}.",
    )


def named(option: str, names: Sequence[str]) -> list[str]:
    """The option before each of the names."""
    return [part for name in names for part in (option, name)]


def fail_by_meaning(exit_code: int) -> None:
    """Fail the task for good where another try would end the same."""
    if exit_code in _FINAL:
        raise AirflowFailException(f"exit code {exit_code}: {_FINAL[exit_code]}")


def note_folder(operator: BaseOperator, context: Mapping[str, Any], folder: str) -> None:
    """Let a DAG that is scheduled by the operator's assets know where the tables are."""
    for asset in operator.outlets:
        context["outlet_events"][asset].extra = {"folder": folder}


class SparkSubmitJob(SparkSubmitOperator):
    """A job by spark-submit."""

    template_fields = (*SparkSubmitOperator.template_fields, "folder", "delta_package")

    def __init__(self, *, job: str, arguments: str, folder: str, **others: Any) -> None:
        super().__init__(
            application=f"{_PACKAGE}/jobs/{job}.py",
            application_args=arguments,
            properties_file=f"{_PACKAGE}/conf/spark-defaults.conf",
            conf={
                # Spark would log each of its steps, a thousand lines, in the task's log.
                "spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile="
                f"{_PACKAGE}/conf/log4j2.properties"
            },
            name=f"kafkalog {job}",
            **others,
        )
        self.folder = folder
        self.delta_package = _DELTA_PACKAGE

    def execute(self, context: Any) -> None:
        """Run the job; its exit code says whether another try can help."""
        if self.delta_package:
            self.conf = {**(self.conf or {}), "spark.jars.packages": self.delta_package}
        try:
            super().execute(context)
        except AirflowException:
            # The hook has the process; the error has the code in its text only.
            process = self._hook and self._hook._submit_sp
            if process:
                fail_by_meaning(process.returncode)
            raise
        note_folder(self, context, self.folder)


class KafkalogCommand(BaseOperator):
    """The command `kafkalog`, on the worker's machine; `arguments` are a list, or a template that
    gives one."""

    template_fields = ("arguments",)

    def __init__(self, *, arguments: str | list[str], **others: Any) -> None:
        super().__init__(**others)
        self.arguments = arguments
        self._hook = SubprocessHook()

    def execute(self, context: Any) -> None:
        """Run the command; its exit code says whether another try can help."""
        code = self._hook.run_command([COMMAND or "kafkalog", *self.command()]).exit_code
        fail_by_meaning(code)
        if code:
            raise AirflowException(f"exit code {code}")

    def command(self) -> list[str]:
        """The arguments, with those that the command begins with."""
        return list(self.arguments)

    def on_kill(self) -> None:
        """End the command with its task."""
        self._hook.send_sigterm()


class CommandJob(KafkalogCommand):
    """A job by the command `kafkalog job`."""

    template_fields = ("arguments", "folder")

    def __init__(self, *, job: str, folder: str, **others: Any) -> None:
        super().__init__(**others)
        self.job, self.folder = job, folder

    def execute(self, context: Any) -> None:
        """Run the job."""
        super().execute(context)
        note_folder(self, context, self.folder)

    def command(self) -> list[str]:
        """The arguments, with those that name the job."""
        return ["job", self.job.replace("_", "-"), *self.arguments]


def retried() -> dict[str, Any]:
    """How often a task is tried again, where its exit code does not say that this cannot help."""
    return {"retries": 2, "retry_delay": timedelta(minutes=5)}


def kafkalog_job(job: str, arguments: str, *, folder: str, outlet: Asset) -> BaseOperator:
    """A task that runs one of kafkalog's jobs. `arguments` is a template that gives their list,
    `folder` one that gives where the job writes."""
    operator = CommandJob if COMMAND else SparkSubmitJob
    return operator(
        task_id=job, job=job, arguments=arguments, folder=folder, outlets=[outlet], **retried()
    )
