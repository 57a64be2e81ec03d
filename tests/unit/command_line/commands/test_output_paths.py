"""What jobs are given, --output-dir above all, is looked at before Spark starts."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.job_files import job_titles
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.jobs.tables.runs import announced_logs
from kafkalog.storage.files.output_files import refuse_unwritable_file
from tests.support.logs.log_dirs import add_partition
from tests.support.zookeeper.zookeeper_files import ROOT, snapshot_bytes, write_data_dir

JOBS = sorted(name.replace("-", "_") for name in job_titles())
# A restore writes a cluster alone.
WITH_OUTPUT = [name for name in JOBS if name != "restore"]
# What jobs need beside PATH and --output-dir.
NEEDED = {
    "diff": ["--before", "logs"],
    "migrate_offsets": ["--zookeeper", "z"],
    "salvage": ["--to", "new"],
}


def run(name: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str | None]:
    """The exit code of a job without its body, and the output directory that this is given."""
    found: list[str] = []

    def body(output_dir: str, **_: Any) -> ExitCode:
        found.append(output_dir)
        return ExitCode.DONE

    main = import_module(f"jobs.{name}").main
    monkeypatch.setattr(main, "callback", body)
    return main(["logs", *NEEDED.get(name, []), *arguments]), found[0] if found else None


def test_there_are_twenty_one_jobs() -> None:
    assert len(JOBS) == 21


@pytest.mark.parametrize("name", WITH_OUTPUT)
def test_a_relative_output_is_one_of_the_current_directory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = run(name, monkeypatch, "--output-dir", "lake/shop")
    assert found == (ExitCode.DONE, str(tmp_path / "lake" / "shop"))


@pytest.mark.parametrize("name", [name for name in WITH_OUTPUT if name != "report"])
@pytest.mark.parametrize("uri", ["s3a://bucket/lake", "hdfs://name/lake/", "file:///lake"])
def test_a_uri_is_left_to_spark(name: str, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(name, monkeypatch, "--output-dir", uri) == (ExitCode.DONE, uri)


def test_the_page_is_written_to_this_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", monkeypatch, "--output-dir", "file:///lake") == (ExitCode.DONE, "/lake")
    code, _ = run("report", monkeypatch, "--output-dir", "s3a://bucket/lake")
    assert code == ExitCode.WRONG_ARGUMENTS
    assert "s3a://bucket/lake is a URI: give a directory of this machine" in capsys.readouterr().err


def test_the_ingest_offers_no_format_that_it_refuses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--output-dir", "out", "--format", "json")
    assert run("ingest_topics", monkeypatch, *given) == (ExitCode.WRONG_ARGUMENTS, None)
    assert run("ingest_topics", monkeypatch, "--help") == (ExitCode.DONE, None)
    told = capsys.readouterr().out
    assert "--format [delta|iceberg|parquet]\n" in told


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with log directory `logs`, data directory `zookeeper`, and `file`."""
    add_partition(tmp_path / "logs", "orders-0")
    add_partition(tmp_path / "logs", "__consumer_offsets-0")
    write_data_dir(tmp_path / "zookeeper", {0: snapshot_bytes([ROOT])})
    (tmp_path / "file").write_text("kept")
    return tmp_path


def refused(
    name: str,
    place: Path,
    arguments: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> tuple[int, str]:
    """The exit code of a job that is not able to start Spark, and its last line."""
    job: Any = import_module(f"jobs.{name}")
    monkeypatch.setattr("kafkalog.spark.session.job_session", None)
    monkeypatch.chdir(place)
    given = {
        "": "zookeeper" if name == "audit_consumers" else "logs",
        **({"--output-dir": "out"} if name in WITH_OUTPUT else {}),
        **{
            "diff": {"--before": "logs"},
            "migrate_offsets": {"--zookeeper": "zookeeper"},
            "salvage": {"--to": "new"},
        }.get(name, {}),
        **arguments,
    }
    before = sorted(place.rglob("*"))
    code = job.main([word for pair in given.items() for word in pair if word])
    assert sorted(place.rglob("*")) == before
    return code, capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("name", WITH_OUTPUT)
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ({"": "absent"}, ExitCode.UNREADABLE_INPUT, "absent"),
        ({"--colour": "red"}, ExitCode.WRONG_ARGUMENTS, "--colour"),
        ({"--output-dir": "file"}, ExitCode.WRONG_ARGUMENTS, "file is a file"),
        ({"--output-dir": "file/out"}, ExitCode.WRONG_ARGUMENTS, "file is a file"),
        ({"--mode": "LAX"}, ExitCode.WRONG_ARGUMENTS, "--mode: 'LAX'"),
    ],
    ids=str,
)
def test_arguments_are_refused_before_spark_starts(
    name: str,
    arguments: dict[str, str],
    code: ExitCode,
    said: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, line = refused(name, place, arguments, monkeypatch, capsys)
    assert (found, said in line) == (code, True), line


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("ingest_topics", {"--starting-offsets-out": "absent/o.json"}, "absent is not"),
        ("ingest_topics", {"--starting-offsets-out": "zookeeper"}, "a file: this is a directory"),
        ("migrate_offsets", {"--write-segments": "file"}, "file exists: kafkalog writes to new"),
        ("migrate_offsets", {"--write-segments": "file/new"}, "file is a file"),
        ("migrate_offsets", {"--write-segments": "logs/new"}, "a directory outside of"),
        ("migrate_offsets", {"--write-zookeeper-commands": "file"}, "a file that is not there yet"),
        ("migrate_offsets", {"--write-zookeeper-commands": "a/b"}, "a is not"),
        ("salvage", {"--to": "zookeeper"}, "zookeeper exists: kafkalog writes to new"),
        ("salvage", {"--to": "file/new"}, "file is a file"),
        ("salvage", {"--index-interval-bytes": "-1"}, "-1 is not in the range x>=0"),
        ("restore", {"--to": "zookeeper"}, "zookeeper exists: kafkalog writes to new"),
        ("restore", {"--to": "n"}, "no __cluster_metadata-0"),
        ("restore", {"--to": "n", "--nodes": "1"}, "is not ID@HOST"),
        ("report_transactions", {"--max-transaction-timeout": "-1"}, "x>=0"),
        ("consumer_lag", {"--max-lag": "-1"}, "x>=0"),
        ("consumer_lag", {"--offsets-retention": "a week"}, "'a week' is not a valid integer"),
        ("consumer_lag", {"": "logs/orders-0"}, "no partition of __consumer_offsets"),
        ("lag_history", {"": "logs/orders-0"}, "no partition of __consumer_offsets"),
        ("lag_history", {"--burrow-minimum-complete": "7"}, "7.0 is not in the range 0<=x<=1"),
        ("validate_checksums", {"--show": "-1"}, "-1 is not in the range x>=0"),
    ],
    ids=str,
)
def test_what_a_job_cannot_use_is_reported_before_spark_starts(
    name: str,
    arguments: dict[str, str],
    said: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, line = refused(name, place, arguments, monkeypatch, capsys)
    assert code in (ExitCode.WRONG_ARGUMENTS, ExitCode.UNREADABLE_INPUT)
    assert said in line


def test_an_empty_output_is_not_the_current_directory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("validate_checksums", "report"):
        assert run(name, monkeypatch, "--output-dir", "") == (ExitCode.WRONG_ARGUMENTS, None)
        assert "--output-dir: an empty path" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("verify_compaction", "--before"),
        ("consumer_lag", "--zookeeper"),
        ("audit_consumers", "--log-dir"),
        ("ingest_topics", "--starting-offsets-out"),
        ("migrate_offsets", "--write-segments"),
        ("migrate_offsets", "--write-zookeeper-commands"),
    ],
)
def test_an_empty_path_is_refused_before_anything_is_read(
    name: str, option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--output-dir", "/tmp/never", option, ""]
    assert run(name, monkeypatch, *given) == (ExitCode.WRONG_ARGUMENTS, None)
    assert f"{option}: an empty path" in capsys.readouterr().err


def test_an_empty_path_to_read_is_not_the_current_directory() -> None:
    for given in (["check", ""], ["salvage", "logs", "--to", ""]):
        result = CliRunner().invoke(kafkalog, given)
        assert (result.exit_code, result.stdout) == (ExitCode.WRONG_ARGUMENTS, "")
        assert "an empty path" in result.stderr


@pytest.mark.parametrize(
    "variables",
    [
        {"PYSPARK_GATEWAY_PORT": "1"},
        {"SPARK_REMOTE": "sc://host"},
        {"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"},
        {"HADOOP_CONF_DIR": "/etc/hadoop"},
    ],
    ids=str,
)
def test_an_output_on_a_cluster_is_left_to_spark(
    variables: dict[str, str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    job = JobSettings((str(place / "logs"),), str(place / "file" / "lake"))
    inputs, _ = announced_logs(job)
    assert inputs == [str(place / "logs")]


@pytest.mark.parametrize("path", ["lake/offsets.json", "lake/tables/offsets.json"])
def test_a_file_may_lie_where_the_job_makes_a_directory_first(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refuse_unwritable_file("--starting-offsets-out", path, "lake/tables")
    with pytest.raises(OptionError, match="lake is not"):
        refuse_unwritable_file("--starting-offsets-out", "lake/offsets.json", "sea")
    assert not any(tmp_path.iterdir())
