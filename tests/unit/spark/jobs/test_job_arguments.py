"""The arguments that all jobs have, and what they refuse before Spark starts."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs.consumer_lag import main as consumer_lag
from jobs.lag_history import main as lag_history
from kafkalog.coordination.groups.lag_question import ChosenNames
from kafkalog.errors import LogDirError, OptionError
from kafkalog.exit_codes import INTERRUPTED, OUTPUT_CLOSED
from kafkalog.spark.jobs.job import ExitCode, JobCommand, JobSettings, job_command, run_job
from kafkalog.spark.jobs.tables.runs import announced_logs, is_small, with_internal
from kafkalog.views.options.topics import TopicChoice
from kafkalog.words import counted
from tests.support.logs.log_dirs import UNIQUE, add_partition, log_name
from tests.support.repository import ROOT


def counting(found: list[JobSettings]) -> JobCommand:
    """A job that notes its settings."""

    @job_command("count-records", "logs --output-dir tables")
    def main(job: JobSettings) -> ExitCode:
        """Count what is there."""
        found.append(job)
        return ExitCode.DONE

    return main


def parsed(*arguments: str) -> JobSettings:
    found: list[JobSettings] = []
    assert counting(found)(arguments) == ExitCode.DONE
    return found[0]


def help_text(capsys: pytest.CaptureFixture[str]) -> str:
    assert counting([])(["--help"]) == ExitCode.DONE
    return capsys.readouterr().out


def test_exit_codes_are_those_that_the_help_tells(capsys: pytest.CaptureFixture[str]) -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "DONE": 0,
        "FINDINGS": 1,
        "WRONG_ARGUMENTS": 2,
        "UNREADABLE_INPUT": 3,
    }
    told = "0 done; 1 findings, only with --fail-on-findings; 2 wrong arguments;\n"
    assert told in help_text(capsys)


def test_a_job_needs_a_log_dir_and_an_output() -> None:
    assert parsed("logs", "--output-dir", "/tables") == JobSettings(
        paths=("logs",),
        output_dir="/tables",
        mode="PERMISSIVE",
        fail_on_findings=False,
        table_format="delta",
        show=20,
    )


def test_all_arguments_can_be_given() -> None:
    options = "--output-dir /out --format json --show 0 --mode FAILFAST --fail-on-findings"
    assert parsed("disk1", "disk2/*", *options.split()) == JobSettings(
        paths=("disk1", "disk2/*"),
        output_dir="/out",
        mode="FAILFAST",
        fail_on_findings=True,
        table_format="json",
        show=0,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "Missing argument 'PATH...'"),
        ("logs", "Missing option '--output-dir'"),
        ("--output-dir out", "Missing argument 'PATH...'"),
        ("logs --output-dir out --format csv", "'delta', 'parquet', 'json'"),
        ("logs --output-dir out --mode LAX", "'FAILFAST', 'PERMISSIVE', 'DROPMALFORMED'"),
        ("logs --output-dir out --show many", "--show: 'many' is not a valid integer"),
        ("logs --output-dir out --colour", "--colour"),
    ],
)
def test_wrong_arguments_are_reported_and_exit_with_2(
    arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert counting([])(arguments.split()) == ExitCode.WRONG_ARGUMENTS
    told = capsys.readouterr().err
    assert told.startswith("error: ") and told.count("\n") == 1
    assert said in told and told.endswith(" (see jobs/count_records.py --help)\n")


def test_an_option_that_is_given_twice_is_a_wrong_argument(
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ["logs", "--output-dir", "a", "--output-dir", "b"]
    assert counting([])(given) == ExitCode.WRONG_ARGUMENTS
    assert capsys.readouterr().err == "error: --output-dir is given twice\n"


@pytest.mark.parametrize("name", ["topic", "group"])
def test_names_and_a_pattern_for_them_contradict_each_other_in_every_job(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["logs", "--output-dir", "out", f"--{name}", "a", f"--{name}-pattern", "^b"]
    assert consumer_lag(given) == ExitCode.WRONG_ARGUMENTS
    told = f"error: --{name}-pattern cannot be used with --{name}\n"
    assert capsys.readouterr().err == told


def test_a_share_of_commits_is_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["logs", "--output-dir", "out", "--burrow-minimum-complete", "nan"]
    assert lag_history(given) == ExitCode.WRONG_ARGUMENTS
    assert "--burrow-minimum-complete: nan is not a number" in capsys.readouterr().err


def test_help_and_wrong_arguments_need_no_pyspark() -> None:
    program = """
import sys
sys.modules["pyspark"] = sys.modules["py4j"] = None
from importlib import import_module
for name in sys.argv[1:]:
    main = import_module(f"jobs.{name}").main
    assert (main(["--help"]), main([])) == (0, 2), name
"""
    jobs = [path.stem for path in (ROOT / "jobs").glob("*.py")]
    subprocess.run([sys.executable, "-c", program, *jobs], check=True, stdout=subprocess.PIPE)


def test_help_tells_what_a_path_is_and_gives_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    told = help_text(capsys)
    for said in (
        "Count what is there.",
        "python jobs/count_records.py logs --output-dir tables",
        "partition directory",
        ".log file",
        "glob",
    ):
        assert said in told


def test_inputs_are_announced_and_globs_resolved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_partition(tmp_path / "disk1", "orders-0", 0, 100, size=1000)
    add_partition(tmp_path / "disk2", "orders-1", 0, size=500)
    add_partition(tmp_path / "disk2", "__consumer_offsets-0", 0, size=10)
    add_partition(tmp_path / "disk2", f"orders-2.{UNIQUE}-delete", 0, size=7)
    args = parsed(str(tmp_path / "disk*"), "--output-dir", "tables")
    assert announced_logs(args)[0] == [str(tmp_path / "disk1"), str(tmp_path / "disk2")]
    assert capsys.readouterr() == ("", "found 4 segments of 3 partitions, 2,510 bytes\n")


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (TopicChoice(("users",)).chosen, "found 1 segment of 1 partition, 500 bytes"),
        (TopicChoice().chosen, "found 3 segments of 2 partitions, 2,500 bytes"),
        (with_internal(None), "found 4 segments of 3 partitions, 2,510 bytes"),
        (
            with_internal(ChosenNames(topics=frozenset(["users"])).is_topic),
            "found 2 segments of 2 partitions, 510 bytes",
        ),
    ],
)
def test_of_some_topics_the_chosen_ones_are_announced(
    chosen: Any, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_partition(tmp_path, "orders-0", 0, 100, size=1000)
    add_partition(tmp_path, "users-0", 0, size=500)
    add_partition(tmp_path, "__consumer_offsets-0", 0, size=10)
    _, logs = announced_logs(parsed(str(tmp_path), "--output-dir", "tables"), chosen=chosen)
    assert len(logs) == 3
    assert capsys.readouterr() == ("", f"{found}\n")


@pytest.mark.parametrize(("last_size", "expected"), [(2**31 - 100, True), (2**31 - 99, False)])
def test_a_job_is_small_up_to_2_gib(tmp_path: Path, last_size: int, expected: bool) -> None:
    partition = add_partition(tmp_path, "orders-0", 0, size=100)
    (partition / log_name(7)).touch()
    os.truncate(partition / log_name(7), last_size)
    _, logs = announced_logs(parsed(str(tmp_path), "--output-dir", "tables"))
    assert is_small(logs) is expected


def test_a_single_file_is_announced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    partition = add_partition(tmp_path, "orders-0", 0, 100, size=1)
    args = parsed(str(partition / log_name(0)), "--output-dir", "tables")
    assert announced_logs(args)[0] == [str(partition / log_name(0))]
    assert capsys.readouterr() == ("", "found 1 segment of 1 partition, 1 byte\n")


def test_inputs_that_are_not_there_are_an_error_before_a_session_starts(tmp_path: Path) -> None:
    with pytest.raises(LogDirError, match="nowhere"):
        announced_logs(parsed(str(tmp_path / "nowhere"), "--output-dir", "tables"))


@pytest.mark.parametrize(
    ("mode", "is_error"), [("FAILFAST", True), ("PERMISSIVE", False), ("DROPMALFORMED", False)]
)
def test_a_bad_checkpoint_stops_a_job_that_stops_at_damage(
    mode: str, is_error: bool, tmp_path: Path
) -> None:
    # F80.
    add_partition(tmp_path, "orders-0", 0)
    (tmp_path / "replication-offset-checkpoint").write_text("garbage")
    args = parsed(str(tmp_path), "--output-dir", "tables", "--mode", mode)
    if is_error:
        with pytest.raises(LogDirError, match="replication-offset-checkpoint"):
            announced_logs(args)
    else:
        assert announced_logs(args)[0] == [str(tmp_path)]


@pytest.mark.parametrize(
    ("count", "noun", "expected"),
    [
        (0, "segment", "0 segments"),
        (1, "segment", "1 segment"),
        (2, "segment", "2 segments"),
        (1, "batch", "1 batch"),
        (0, "batch", "0 batches"),
        (1_234_567, "byte", "1,234,567 bytes"),
    ],
)
def test_counts_are_words(count: int, noun: str, expected: str) -> None:
    assert counted(count, noun) == expected


@pytest.mark.parametrize(
    ("read", "output"),
    [
        ("", "tables"),
        ("", "."),
        ("", "orders-0"),
        ("", "orders-0/../tables/of/today"),
        ("orders-0", "orders-0/tables"),
        ("orders-0", "tables"),
        ("orders-0/*.log", "orders-0"),
        ("", "../linked/tables"),
    ],
)
def test_an_output_in_what_is_read_is_refused(read: str, output: str, tmp_path: Path) -> None:
    log_dir = tmp_path / "disk"
    add_partition(log_dir, "orders-0", 0)
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\n")
    (tmp_path / "linked").symlink_to(log_dir)
    args = parsed(str(log_dir / read), "--output-dir", str(log_dir / output))
    with pytest.raises(OptionError, match=r"--output-dir: .* a directory outside of .*disk"):
        announced_logs(args)


def test_a_table_that_a_link_puts_into_what_is_read_is_refused(tmp_path: Path) -> None:
    add_partition(tmp_path / "disk", "orders-0", 0)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "faults").symlink_to(tmp_path / "disk")
    args = parsed(str(tmp_path / "disk"), "--output-dir", str(tmp_path / "tables"))
    with pytest.raises(
        OptionError, match=r"--output-dir: .*faults' is not valid, expected a directory out"
    ):
        announced_logs(args)


@pytest.mark.parametrize("read", ["faults/disk", "faults/disk/orders-0", "*/*"])
def test_a_table_in_which_lies_what_is_read_is_refused(read: str, tmp_path: Path) -> None:
    # Writing it in parquet would delete what else its directory holds.
    add_partition(tmp_path / "faults/disk", "orders-0", 0)
    args = parsed(str(tmp_path / read), "--output-dir", str(tmp_path))
    with pytest.raises(OptionError, match=r"--output-dir: .* where faults holds nothing that"):
        announced_logs(args)


@pytest.mark.parametrize(("read", "output"), [("disk", "disk-tables"), ("orders-0", "tables")])
def test_an_output_beside_what_is_read_is_taken(read: str, output: str, tmp_path: Path) -> None:
    # A partition's directory by itself is in no broker's log directory.
    add_partition(tmp_path / "disk", "orders-0", 0)
    add_partition(tmp_path, "orders-0", 0)
    args = parsed(str(tmp_path / read), "--output-dir", str(tmp_path / output))
    assert announced_logs(args)[0] == [str(tmp_path / read)]


def test_a_job_whose_output_has_lost_its_reader_ends_as_shells_have_it() -> None:
    program = """
import sys
from kafkalog.spark.jobs.job import ExitCode, run_job
sys.exit(run_job(lambda: print("row\\n" * 99_999) or ExitCode.DONE))
"""
    run = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert run.stdout is not None
    assert run.stdout.readline() == b"row\n"
    run.stdout.close()
    _, said = run.communicate(timeout=120)
    assert (run.returncode, said) == (OUTPUT_CLOSED, b"")


def test_a_job_that_is_interrupted_ends_as_shells_have_it() -> None:
    def run() -> ExitCode:
        raise KeyboardInterrupt

    assert run_job(run) == INTERRUPTED


def test_what_a_job_prints_has_no_commands_for_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run() -> ExitCode:
        sys.stdout.write("orders\x1b[2J\nnext\n")
        raise LogDirError("a\x07: missing")

    assert run_job(run) == ExitCode.UNREADABLE_INPUT
    assert capsys.readouterr() == ("orders\\x1b[2J\nnext\n", "error: a\\x07: missing\n")


def test_a_job_sees_whether_its_output_is_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    # For a progress bar, which Spark shows on a terminal only.
    primary, terminal = os.openpty()
    seen: list[bool] = []

    def run() -> ExitCode:
        seen.append(sys.stderr.isatty())
        return ExitCode.DONE

    with open(terminal, "w") as stderr, open(os.devnull, "w") as nowhere:
        for stream in (stderr, nowhere):
            monkeypatch.setattr(sys, "stderr", stream)
            run_job(run)
    os.close(primary)
    assert seen == [True, False]
