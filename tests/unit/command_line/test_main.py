"""The command `kafkalog`: help at once, one line for an error, and exit codes as the jobs have."""

import json
import os
import py_compile
import re
import subprocess
import sys
from importlib.machinery import SourcelessFileLoader
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog import __version__
from kafkalog.command_line.main import COMMANDS, kafkalog
from kafkalog.errors import LogDirError, OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from tests.support.logs.tiered_objects import store_segment
from tests.support.repository import ROOT

HEAVY = ("numba", "numpy", "pyarrow", "pyspark", "pandas")


def modules_after(*arguments: str) -> set[str]:
    """What is imported once a command has run."""
    code = (
        "import atexit, sys, json\n"
        f"sys.argv = ['kafkalog', *{arguments!r}]\n"
        "from kafkalog.command_line.main import main\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
        "main()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(run.stderr))


@pytest.mark.parametrize("arguments", [(), *(tuple(name.split()) for name in COMMANDS)], ids=str)
def test_help_imports_nothing_that_takes_long(arguments: tuple[str, ...]) -> None:
    assert modules_after(*arguments, "--help").isdisjoint(HEAVY)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_found_and_shows_examples(name: str) -> None:
    result = CliRunner().invoke(kafkalog, [*name.split(), "--help"])
    assert (result.exit_code, "Examples:" in result.output) == (ExitCode.DONE, True)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_fits_a_terminal_and_names_all_options(name: str) -> None:
    # Decision 73
    runner = CliRunner()
    short, whole = (
        runner.invoke(kafkalog, [*name.split(), option], terminal_width=120).output
        for option in ("--help", "--help-all")
    )
    assert len(short.splitlines()) <= 24
    listed = {
        each for line in whole.splitlines() for each in re.findall(r"^  (?:-\w, )?(--[\w-]+)", line)
    }
    assert listed and listed <= {*re.findall(r"--[\w-]+", short), "--help"}


def test_the_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(kafkalog, ["--version"]).output == f"kafkalog {__version__}\n"


def test_python_runs_the_package_as_the_command() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "kafkalog", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"kafkalog {__version__}\n"


def test_a_command_that_is_none_is_a_wrong_argument() -> None:
    result = CliRunner().invoke(kafkalog, ["dmup"])
    assert (result.exit_code, "dmup" in result.stderr) == (ExitCode.WRONG_ARGUMENTS, True)
    assert "did you mean dump?" in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OptionError("--topic", "x", "a topic"), 2, "--topic: 'x' is not valid, expected a topic"),
        (LogDirError("/nowhere: nothing"), 3, "/nowhere: nothing"),
        (PermissionError(13, "Permission denied", "/a"), 3, "[Errno 13] Permission denied: '/a'"),
        (KeyboardInterrupt(), 130, None),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(
    error: BaseException, code: int, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**arguments: object) -> None:
        raise error

    monkeypatch.setattr("kafkalog.command_line.commands.completion.completion.callback", fail)
    result = CliRunner().invoke(kafkalog, ["completion", "bash"])
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr == ("" if said is None else f"error: {said}\n")


def test_output_without_a_reader_ends_the_command_quietly() -> None:
    code = "from kafkalog.command_line.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "completion", "bash"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait() == 141


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_that_asks_kafkalog(shell: str) -> None:
    result = CliRunner().invoke(kafkalog, ["completion", shell])
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"_KAFKALOG_COMPLETE={shell}_complete" in result.stdout


def test_bash_completes_a_command_and_an_option() -> None:
    def completed(*words: str) -> list[str]:
        environment = {
            "_KAFKALOG_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("kafkalog", *words)),
            "COMP_CWORD": str(len(words)),
        }
        result = CliRunner().invoke(kafkalog, prog_name="kafkalog", env=environment)
        return result.output.split()

    assert "plain,completion" in completed("comp")
    assert "plain,--help" in completed("completion", "--h")
    assert "plain,--voter" in completed("quorum", "rebuild", "--v")
    assert completed("quorum", "--v") == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("find logs --topic t --key a --key b", "error: --key is given twice\n"),
        ("ls logs --by topic --by topic", "error: --by is given twice\n"),
        ("groups --list logs --state", "--state cannot be used with --list"),
        ("txns logs --open --all", "--all cannot be used with --open"),
        (
            "get-offsets logs --topic a --topic-pattern b",
            "--topic-pattern cannot be used with --topic",
        ),
    ],
)
def test_of_options_that_contradict_each_other_not_the_last_one_counts(
    arguments: str, said: str
) -> None:
    result = CliRunner().invoke(kafkalog, arguments.split())
    assert (result.exit_code, result.stdout) == (ExitCode.WRONG_ARGUMENTS, "")
    assert said in result.stderr


def test_options_that_are_repeatable_and_switches_may_be_given_twice() -> None:
    asked = "ls missing --topic a --topic b --deep --deep"
    result = CliRunner().invoke(kafkalog, asked.split())
    assert (result.exit_code, "missing" in result.stderr) == (ExitCode.UNREADABLE_INPUT, True)


def test_check_names_a_tiered_partition_without_a_segment(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    segment = write_batch([Record(0, 1, 0, b"k", b"v", ())])
    store_segment(tmp_path, "sound-0", 0, segment)
    log = store_segment(tmp_path, "lost-0", 0, segment)
    log.with_suffix(".rsm-manifest").unlink()
    result = CliRunner().invoke(kafkalog, ["check", str(tmp_path)])
    assert result.exit_code == 0, result.exception
    assert "the indexes of 2 partitions with segments in tiered storage are not" in result.stderr
    assert str(log) in caplog.text


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("consume", "dump --deep"),
        ("topics", "ls"),
        ("offsets", "get-offsets"),
        ("plan-retention", "retention"),
        ("verify-compaction", "compaction"),
    ],
)
def test_the_command_is_named_that_does_what_other_tools_call_otherwise(
    name: str, other: str
) -> None:
    result = CliRunner().invoke(kafkalog, [name, "logs"])
    assert (result.exit_code, f"use kafkalog {other} (see" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["consumer-lag", "x"], "No such command 'consumer-lag': use kafkalog job consumer-lag"),
        (["ls", "x", "--by", "topik"], "did you mean topic?"),
        (["export", "x", "--format", "parqet"], "'delta'; did you mean parquet? (see"),
    ],
)
def test_a_job_and_a_choice_that_are_meant_are_named(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(kafkalog, arguments)
    assert result.exit_code == ExitCode.WRONG_ARGUMENTS
    assert said in result.stderr


def test_paths_come_from_the_environment_where_none_is_given() -> None:
    log_dirs = [ROOT / "examples" / name for name in ("shop-week", "log-dirs/damaged")]
    variable = {"KAFKALOG_LOG_DIRS": ", ".join(map(str, log_dirs))}
    result = CliRunner().invoke(kafkalog, ["ls", "--format", "csv"], env=variable)
    assert {line.split(",")[0] for line in result.stdout.splitlines()[1:]} >= {"orders", "e.w"}


def test_a_compiled_module_that_is_cut_off_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, compiled = tmp_path / "module.py", tmp_path / "module.pyc"
    source.write_text("value = list(range(9))\n")
    py_compile.compile(str(source), str(compiled))
    os.truncate(compiled, compiled.stat().st_size - 1)

    def imported(*_: object) -> None:
        SourcelessFileLoader("module", str(compiled)).get_code("module")

    monkeypatch.setattr("kafkalog.command_line.dump.run.planned", imported)
    result = CliRunner().invoke(kafkalog, ["dump", str(tmp_path)])
    assert (result.exit_code, result.stderr.count("\n")) == (ExitCode.UNREADABLE_INPUT, 1)
    assert result.stderr.startswith(
        "error: a compiled module in a __pycache__ directory is cut off"
    )
