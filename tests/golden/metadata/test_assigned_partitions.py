"""Partitions that the metadata assigns to a directory of real brokers, and that are not there: none
where a broker has just stopped, and those that were taken away. Rule: F890."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.inspection.metadata.assigned_partitions import cluster_images, missing_replica_lines
from kafkalog.storage.log_dir.log_dir import find_partitions

Unpacked = Callable[[str], Path]

CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")
ID = re.compile(r"id: ([0-9]+)")
TAKEN = ("shop.empty-2", "shop.tx-1")
UNASSIGNED, LOST = "A" * 21 + "Q", "A" * 21 + "g"
OWN, OTHER = "58re7iadeZ9ThE6GcWduuA", "b3RoZXIgZGlyZWN0b3J5AA"


def missing(*paths: Path) -> list[str]:
    given = [str(path) for path in paths]
    logs = find_partitions(given, strict=False)
    return [*missing_replica_lines(given, logs, cluster_images(logs))]


@pytest.fixture
def log_dir(unpacked: Unpacked, tmp_path: Path) -> Path:
    """A broker's directory without two of its partitions, and without what checkpoints say of
    them: they would be named for that."""
    copy = tmp_path / "log-dirs"
    shutil.copytree(unpacked("kafka44.logs") / "log-dirs", copy)
    for name in TAKEN:
        shutil.rmtree(copy / name)
    for name in CHECKPOINTS:
        version, _, *lines = (copy / name).read_text().splitlines()
        kept = [each for each in lines if "-".join(each.split()[:2]) not in TAKEN]
        (copy / name).write_text("\n".join([version, str(len(kept)), *kept, ""]))
    return copy


@pytest.mark.parametrize("archive", ["kafka44.logs", "tiered43.logs"])
def test_nothing_is_missing_where_a_broker_has_stopped(unpacked: Unpacked, archive: str) -> None:
    # One of them has a deleted topic, whose directory is not yet removed.
    assert missing(unpacked(archive) / "log-dirs") == []


def test_nothing_is_missing_of_three_brokers(unpacked: Unpacked) -> None:
    directories = [path.parent for path in unpacked("diverged44.logs").rglob("meta.properties")]
    assert len(directories) > 2
    assert missing(*directories) == []


def test_partitions_that_were_taken_away_are_missing(log_dir: Path) -> None:
    (line,) = missing(log_dir)
    assert line == (
        f"missing: 2 partitions that the cluster's metadata assigns to {log_dir}: "
        "shop.empty-2, shop.tx-1"
    )


def test_what_checkpoints_name_is_not_named_twice(unpacked: Unpacked, log_dir: Path) -> None:
    for name in CHECKPOINTS:
        shutil.copy(unpacked("kafka44.logs") / "log-dirs" / name, log_dir / name)
    assert missing(log_dir) == []


def test_another_directory_of_the_broker_is_not_asked_for_them(log_dir: Path) -> None:
    properties = log_dir / "meta.properties"
    lines = properties.read_text().splitlines()
    properties.write_text(
        "\n".join("directory.id=" + "A" * 22 if "directory.id" in each else each for each in lines)
    )
    assert missing(log_dir) == []


@pytest.mark.parametrize(
    ("place", "of_broker", "is_missing"),
    [
        (UNASSIGNED, [OWN], True),
        (UNASSIGNED, [OWN, OTHER], False),
        (OTHER, [OWN, OTHER], False),
        # When a directory fails, the controller takes it from those of the broker, not from its
        # replicas (ReplicationControlManager.handleDirectoriesOffline).
        (OTHER, [OWN], False),
        (LOST, [OWN], False),
    ],
)
def test_a_replica_is_in_the_only_directory_unless_another_has_failed(
    log_dir: Path, place: str, of_broker: list[str], is_missing: bool
) -> None:
    logs = find_partitions([str(log_dir)], strict=False)
    images = cluster_images(logs)
    (image,) = images.values()
    (topic,) = [key for key, row in image.tables["topic"].items() if row["topic"] == "shop.tx"]
    partition, broker = image.tables["partition"][*topic, 1], image.tables["broker"][(1,)]
    assert (partition["directories"], broker["log_dirs"]) == ([OWN], [OWN])
    image.put("partition", (*topic, 1), {**partition, "directories": [place]})
    image.put("broker", (1,), {**broker, "log_dirs": of_broker})
    (line,) = missing_replica_lines([str(log_dir)], logs, images)
    assert line.endswith(": shop.empty-2, shop.tx-1" if is_missing else ": shop.empty-2")


@pytest.mark.parametrize(("mark", "is_missing"), [("future", False), ("stray", True)])
def test_a_partition_that_is_being_moved_here_is_not_missing(
    log_dir: Path, mark: str, is_missing: bool
) -> None:
    (log_dir / f"shop.tx-1.{'0' * 32}-{mark}").mkdir()
    assert ("shop.tx-1" in "".join(missing(log_dir))) is is_missing


@pytest.mark.parametrize("command", [["ls"], ["check"], ["check", "--topic", "shop.tx"]])
def test_commands_name_them(log_dir: Path, command: list[str]) -> None:
    result = CliRunner().invoke(kafkalog, [*command, str(log_dir)])
    assert result.exit_code == ExitCode.DONE, result.stderr
    (line,) = [each for each in result.output.splitlines() if each.startswith("missing:")]
    named = ["shop.tx-1"] if "--topic" in command else TAKEN
    assert line.endswith(f": {', '.join(named)}")


def test_ls_names_the_replicas_that_the_admin_client_named(unpacked: Unpacked) -> None:
    given = ["ls", str(unpacked("kafka44.logs") / "log-dirs"), "--by", "partition"]
    result = CliRunner().invoke(kafkalog, [*given, "--format", "json"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    found = {
        (row["topic"], row["partition"]): (row["leader"], row["replicas"])
        for row in rows
        if row["topic"] != "__cluster_metadata"
    }
    live = json.loads((unpacked("kafka44.golden") / "admin.json").read_text())["topics"]
    # The broker has stopped since, and leads nothing any more.
    expected = {
        (topic, each["partition"]): (None, [int(id_) for id_ in ID.findall(each["replicas"])])
        for topic, described in live.items()
        for each in described["partitions"]
    }
    assert expected.items() <= found.items()
    assert len(expected) > 30


def test_the_report_names_them(log_dir: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        kafkalog, ["report", str(log_dir), "--output-dir", str(tmp_path / "report")]
    )
    assert result.exit_code == ExitCode.DONE, result.stderr
    page = (tmp_path / "report" / "report.html").read_text()
    assert "shop.empty-2, shop.tx-1" in page
