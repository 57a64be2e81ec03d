"""What can be checked without Spark is: `kafkalog.read` raises the error itself, jobs end before a
session is started."""

from pathlib import Path
from types import ModuleType

import pytest

from jobs import plan_retention, reconstruct_state, report, salvage, verify_compaction
from kafkalog.errors import KafkaLogError, LogDirError, OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.spark.frames import refuse_early
from tests.support.repository import ROOT

SHOP = str(ROOT / "examples" / "shop-week")


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"subscribe": "none"}, OptionError, "what the log directories hold: __consumer_offsets"),
        ({"assign": '{"orders": [7]}'}, OptionError, "'orders-7'"),
        ({"mode": "SOMETIMES"}, OptionError, "mode: 'SOMETIMES' is not valid"),
        ({"columns": "valeu"}, OptionError, "columns of view records: did you mean value?"),
        (
            {"view": "offset_commits", "subscribe": "orders"},
            OptionError,
            "offset_commits of orders",
        ),
    ],
    ids=str,
)
def test_what_options_and_names_tell_is_raised_as_it_is(
    given: dict[str, str], error: type[KafkaLogError], said: str
) -> None:
    with pytest.raises(error, match=said):
        refuse_early([SHOP], given)


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LogDirError, match="no such file or directory"):
        refuse_early([str(tmp_path / "none")], {})


def test_what_can_be_read_and_what_lies_elsewhere_is_let_through() -> None:
    refuse_early([SHOP], {"subscribe": "orders"})
    refuse_early(["s3://bucket/logs"], {"subscribe": "orders"})


def ended(
    job: ModuleType, output: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> int:
    """The job's exit code, in a place where no session can be started."""
    monkeypatch.setattr("kafkalog.spark.session.job_session", None)
    code: int = job.main([SHOP, "--output-dir", str(output), *arguments])
    assert not output.exists()
    return code


@pytest.mark.parametrize("option", ["serverProperties", "topicConfig"])
@pytest.mark.parametrize("job", [plan_retention, report, salvage, verify_compaction])
def test_jobs_look_for_settings_files_before_spark_starts(
    job: ModuleType,
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    argument = {"serverProperties": "--server-properties", "topicConfig": "--topic-config"}[option]
    given = [argument, "/nowhere"]
    if job is salvage:
        given += ["--to", str(tmp_path / "new")]
    assert ended(job, tmp_path / "out", given, monkeypatch) == ExitCode.WRONG_ARGUMENTS
    said = capsys.readouterr().err.splitlines()[-1]
    allowed = "a file on the machine of the driver"
    assert said == f"error: {argument}: '/nowhere' is not valid, expected {allowed}"


def test_an_earlier_copy_is_looked_for_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = ended(verify_compaction, tmp_path / "out", ["--before", "/nowhere"], monkeypatch)
    assert code == ExitCode.UNREADABLE_INPUT
    assert "/nowhere: no such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("avro", "a schema that can be used: not an Avro schema: "),
        ("protobuf", "a file as protoc --include_imports --descriptor_set_out writes it"),
    ],
)
def test_schemas_are_looked_for_before_spark_starts(
    kind: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ["--value-format", kind, "--value-schema", "/nowhere"]
    given += ["--value-message", "M"] if kind == "protobuf" else []
    code = ended(reconstruct_state, tmp_path / "out", given, monkeypatch)
    assert code == ExitCode.WRONG_ARGUMENTS
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith(f"error: --value-schema: '/nowhere' is not valid, expected {said}")
