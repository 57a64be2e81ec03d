"""The Spark jobs that come with the package, by their names (docs/decisions/0021)."""

from __future__ import annotations

import runpy
import sys

from kafkalog.errors import OptionError
from kafkalog.resources import resource
from kafkalog.words import name_suggestions

# `kafkalog.spark.jobs.job` shows it in a job's help.
_STARTED_AS = "kafkalog job"


def job_titles() -> dict[str, str]:
    """Return the jobs by name, each with the first line of its docstring."""
    files = sorted(resource("jobs").iterdir(), key=lambda entry: entry.name)
    titles: dict[str, str] = {}
    for file in files:
        if file.name.endswith(".py"):
            with file.open(encoding="utf-8") as text:
                titles[file.name.removesuffix(".py").replace("_", "-")] = text.readline().strip(
                    '"\n'
                )
    return titles


def job_path(name: str) -> str:
    """Return the file of a job."""
    return str(resource("jobs", f"{name.replace('-', '_')}.py"))


def known_job(name: str) -> str:
    """Return the name of a job as the package has it: `ingest_topics` is ingest-topics. Raises
    OptionError for an unknown one."""
    found = name.replace("_", "-")
    if found not in (names := list(job_titles())):
        raise OptionError("NAME", name, f"a job: {name_suggestions([found], names)}")
    return found


def run_job(name: str, *arguments: str) -> int:
    """Run a job with the arguments of `kafkalog job`, in this process and in its Spark session if
    there is one; return its exit code. The name can have dashes or underscores."""
    name = known_job(name)
    before = sys.argv
    sys.argv = [f"{_STARTED_AS} {name}", *arguments]
    try:
        code: int = runpy.run_path(job_path(name))["main"](arguments)
    finally:
        sys.argv = before
    return code
