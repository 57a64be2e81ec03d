"""The job restore: the same partitions as the command's, byte by byte."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from jobs.restore import main
from kafkalog.command_line.main import kafkalog
from kafkalog.spark.jobs.job import ExitCode
from tests.support.golden.restored_copies import AS_OF, Unpacked, disk_with_orders, orders_in
from tests.support.messages.avro_orders import ORDERS, PERSON

# They have the time of the restore, or ids that are new each time.
_OF_THE_RUN = ("restored_at_ms", "cluster_id", "nodes", "files")


def files(target: Path) -> Iterator[tuple[str, bytes]]:
    """The files of the topics of applications."""
    for path in sorted((target / "data").glob("[!_]*-*/*")):
        yield str(path.relative_to(target)), path.read_bytes()


def manifest(target: Path) -> dict[str, Any]:
    content = json.loads((target / "manifest.json").read_text())
    return {name: value for name, value in content.items() if name not in _OF_THE_RUN}


@pytest.mark.usefixtures("spark")
def test_the_job_writes_what_the_command_writes(
    unpacked: Unpacked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """F1030 to F1056, in Spark's tasks."""
    disks = sorted(map(str, (unpacked("restore44.logs") / "snapshots").glob("*/data")))
    job, command = tmp_path / "job", tmp_path / "command"
    code = main([*disks, "--as-of", AS_OF, "--to", str(job), "--fail-on-findings"])
    assert code == ExitCode.FINDINGS
    said = capsys.readouterr().out
    result = CliRunner().invoke(
        kafkalog, ["restore", *disks, "--as-of", AS_OF, "--to", str(command)]
    )
    assert result.exit_code == ExitCode.FINDINGS
    assert dict(files(job)) == dict(files(command)) != {}
    assert manifest(job) == manifest(command)
    assert "NOT EXACT" in said
    assert sorted(path.name for path in (job / "data").iterdir()) == sorted(
        path.name for path in (command / "data").iterdir()
    )
    verified = CliRunner().invoke(kafkalog, ["restore", "--verify", str(job)])
    assert verified.exit_code == ExitCode.DONE, verified.output


@pytest.mark.usefixtures("spark")
def test_tasks_decode_values_by_the_schemas_in_the_copies(
    unpacked: Unpacked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F1124, F1262.
    inputs = sorted((unpacked("restore44.logs") / "snapshots").glob("*/data"))
    person = tmp_path / "person"
    person.write_text(PERSON)
    given = "--topic", "plain", "--to", str(tmp_path / "to"), "--suppress", str(person)
    assert main([str(disk_with_orders(inputs, tmp_path)), *given]) == ExitCode.DONE
    said = capsys.readouterr().out
    assert "suppressed: 1 record of topic plain" in said
    assert "plain: 1 value not decoded" in said
    assert orders_in(tmp_path / "to") == [*ORDERS[1:]]


def test_an_existing_directory_is_refused(
    unpacked: Unpacked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disks = sorted(map(str, (unpacked("restore44.logs") / "snapshots").glob("*/data")))
    assert main([*disks, "--to", str(tmp_path)]) == ExitCode.UNREADABLE_INPUT
    assert "exists" in capsys.readouterr().err
