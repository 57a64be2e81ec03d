"""Errors of jobs name the option that the user gave, not that of the source."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from shutil import copytree

import click
import pytest
from pyspark.errors import AnalysisException

import kafkalog.spark.session
from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.spark.jobs.job import JobCommand, run_job
from kafkalog.views.options.option_names import named_as_given
from tests.support.repository import ROOT
from tests.support.zookeeper.zookeeper_files import ROOT as ZOOKEEPER_ROOT
from tests.support.zookeeper.zookeeper_files import snapshot_bytes, write_data_dir

LOG_DIR = ROOT / "examples" / "log-dirs" / "kafka-4.4"
JOBS = sorted(path.stem for path in (ROOT / "jobs").glob("[a-z]*.py"))
# No topic, number, time or regular expression, and no path that exists.
WRONG = "no,such["
OUTPUTS = {
    *("--output-dir", "--starting-offsets-out", "--to", "--write-segments"),
    "--write-zookeeper-commands",
}
# Paths to read, which are missing: the message names the path.
INPUTS = {"--before", "--into", "--log-dir", "--zookeeper"}
# Any text is right: what has that name is known once a session has started.
ANY_TEXT = {"--chroot", "--connect-topic", "--group", "--table"}


class StartedError(Exception):
    """A job went on to start a session."""


def options() -> Iterator[tuple[str, str]]:
    for name in JOBS:
        job: click.Command = import_module(f"jobs.{name}").main
        for each in job.params:
            # The first of its names is the one that an error has.
            option = each.opts[0]
            if isinstance(each, click.Option) and not each.is_flag and option not in ANY_TEXT:
                yield name, option


def found_job(name: str) -> JobCommand:
    job: JobCommand = import_module(f"jobs.{name}").main
    return job


def required(job: click.Command) -> dict[str, str]:
    """Values of the options that a job cannot do without: each a path of its own."""
    needed = {"--output-dir"}
    return {
        each.opts[0]: "zookeeper" if each.opts[0] in INPUTS else each.opts[0].strip("-")
        for each in job.params
        if isinstance(each, click.Option) and (each.required or each.opts[0] in needed)
    }


@pytest.mark.parametrize(("name", "option"), list(options()))
def test_a_wrong_value_is_refused_by_the_name_of_its_option(
    name: str,
    option: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(*_: object, **__: object) -> None:
        raise StartedError

    monkeypatch.setattr(kafkalog.spark.session, "job_session", start)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    job = found_job(name)
    given = {**required(job), option: "file/inside" if option in OUTPUTS else WRONG}
    write_data_dir(tmp_path / "zookeeper", {0: snapshot_bytes([ZOOKEEPER_ROOT])})
    copytree(LOG_DIR, tmp_path / "logs")
    arguments = ["zookeeper" if name == "audit_consumers" else "logs"]
    for each, value in given.items():
        arguments += [each, value]
    code = job(arguments)
    told = capsys.readouterr().err
    if option in INPUTS:
        assert (code, WRONG in told) == (ExitCode.UNREADABLE_INPUT, True), told
    else:
        assert (code, option in told) == (ExitCode.WRONG_ARGUMENTS, True), told


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("serverProperties", "--server-properties"),
        ("indexIntervalBytes", "--index-interval-bytes"),
        ("endingTimestamp", "endingTimestamp"),
        ("path", "PATH"),
        ("--compact", "--compact"),
    ],
)
def test_options_of_the_source_have_the_names_of_the_job(name: str, given: str) -> None:
    allowed = "as indexIntervalBytes, or failOnDataLoss=false"
    error = OptionError(name, "topicConfig", allowed, mentioned=("indexIntervalBytes",))
    assert named_as_given(error, found_job("salvage")) == str(
        OptionError(given, "topicConfig", "as --index-interval-bytes, or failOnDataLoss=false")
    )


def test_both_names_of_two_options_that_exclude_each_other_are_the_jobs() -> None:
    error = OptionError(("subscribe", "subscribePattern"), "both", "one of them")
    told = named_as_given(error, found_job("ingest_topics"))
    assert told.startswith("--topic and --topic-pattern: 'both'")


def test_an_error_from_a_task_names_the_option_of_the_job(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run() -> int:
        raise AnalysisException(
            "Traceback (most recent call last):\n"
            "kafkalog.errors.OptionError: serverProperties: 'x' is not valid, expected a file"
        )

    assert run_job(run, found_job("salvage")) == ExitCode.WRONG_ARGUMENTS
    assert capsys.readouterr().err == (
        "error: --server-properties: 'x' is not valid, expected a file\n"
    )
