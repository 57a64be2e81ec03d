"""Whatever a job can answer, a command can answer without Java, and the other way round: the table
at the top of docs/jobs.md pairs them, and both have the same options, but for those named here."""

import re
from importlib import import_module

import click
import pytest

from kafkalog.command_line.main import kafkalog
from tests.support.repository import ROOT

ROW = re.compile(r"^\| (`[a-z_`, ]+`) \| (`[a-z`, -]+`) \| .* \|$", re.MULTILINE)
JOBS = sorted(path.stem for path in (ROOT / "jobs").glob("[a-z]*.py"))

# Commands read what is intact and name the rest, unless damage is what they must stop at.
OF_JOBS = {"--mode"}
# Which rows a terminal gets, in which form, and by how many processes: a job writes whole tables.
OF_COMMANDS = {
    *("--all", "--by", "--columns", "--help-all", "--partition", "--processes", "--topic"),
    *("--verbose", "--wide"),
}
JOB_ALONE = {
    # The command's first path.
    "diff": {"--before"},
    # All jobs have it; here nothing is a finding.
    "key_usage": {"--fail-on-findings"},
    "restore": {"--fail-on-findings"},
    # Only a job goes on in a table from where its last run ended.
    "reconstruct_state": {"--full-refresh"},
}
# Jobs for one table of `groups`, which has options of the other tables too.
ONE_TABLE = ("commit_history", "group_resume")
COMMAND_ALONE = {
    # The other tables of Kafka's tool and those about one start of consumers.
    "consumer_lag": {
        *("--all-groups", "--auto-offset-reset", "--describe", "--history", "--lagging"),
        *("--list", "--members", "--resume", "--state"),
    },
    # What writes nothing, or compares what was written, needs no cluster; the plan is text or JSON.
    "restore": {"--check", "--format", "--manifest", "--verify"},
    # As options of kafka-transactions and of which rows are shown.
    "report_transactions": {
        *("--describe", "--find-hanging", "--list", "--open", "--stable-offsets"),
        "--transactional-id",
    },
    # A second table, which the job writes beside the first.
    "plan_recovery": {"--sequences"},
    # Index files are checked where the disk is.
    "validate_checksums": {"--no-indexes", "--severity"},
}


def pairs() -> dict[str, str]:
    """The command of each job."""
    text = (ROOT / "docs" / "jobs.md").read_text()
    found: dict[str, str] = {}
    for jobs, commands in ROW.findall(text):
        names = (re.findall(r"`([^`]+)`", each) for each in (jobs, commands))
        # A job for several commands has one row.
        found |= dict(zip(*names, strict=False))
    return found


def options(command: click.Command) -> set[str]:
    return {name for each in command.params for name in each.opts if name.startswith("--")}


def of_pair(job: str) -> tuple[set[str], set[str]]:
    name, *table = pairs()[job].split()
    command = kafkalog.get_command(click.Context(kafkalog), name)
    assert command is not None
    assert {*table} <= options(command)
    return options(import_module(f"jobs.{job}").main), options(command)


def test_each_job_has_a_command() -> None:
    assert sorted(pairs()) == JOBS


@pytest.mark.parametrize("job", JOBS)
def test_a_command_has_the_options_of_its_job(job: str) -> None:
    of_job, of_command = of_pair(job)
    assert of_job - of_command - OF_JOBS - {"--show"} == JOB_ALONE.get(job, set())


@pytest.mark.parametrize("job", [job for job in JOBS if job not in ONE_TABLE])
def test_a_job_has_the_options_of_its_command(job: str) -> None:
    of_job, of_command = of_pair(job)
    assert of_command - of_job - OF_COMMANDS == COMMAND_ALONE.get(job, set())
