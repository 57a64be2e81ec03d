"""`kafkalog metadata --by feature --kafka VERSION`: what a version refuses of a cluster."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from tests.support.golden.startup_cases import startup_cases


def metadata(folder: Path, *options: str) -> Result:
    directories = map(str, sorted(folder.glob("d[0-9]")))
    return CliRunner().invoke(kafkalog, ["metadata", *directories, "--by", "feature", *options])


@pytest.fixture
def made(unpacked: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """Make a case's directories."""
    return lambda name: startup_cases(unpacked)[name].made_in(tmp_path)


def test_a_version_that_starts_refuses_nothing(made: Callable[[str], Path]) -> None:
    # 4.4.0 started on it, with all its groups.
    result = metadata(made("00-control"), "--kafka", "4.4")
    assert result.exit_code == 0
    assert "Kafka 4.4 starts, as far as the metadata says: nothing is refused" in result.stdout
    assert "metadata.version                     33  4.4-IV2     4.4" in result.stdout


def test_a_version_that_ends_is_given_every_reason(made: Callable[[str], Path]) -> None:
    # F1014 and F1015: 3.9.2 ended with "Can't read version 4 of BrokerEndpoint".
    result = metadata(made("13-4.4.0-on-3.9.2"), "--kafka", "3.9.2", "--format", "json")
    assert result.exit_code == 1
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["subject"] for row in rows if row["kind"] == "record_version"] == [
        "record RegisterBrokerRecord at offset 12 of __cluster_metadata"
    ]
    assert "metadata.version 33 (4.4-IV2)" in {row["subject"] for row in rows}
    # F1005: this coordinator of groups does not know groups of the consumer protocol.
    (passed_over,) = (row for row in rows if row["kind"] == "coordinator")
    assert passed_over["effect"] == "passed_over"
    assert passed_over["subject"] == "__consumer_offsets-0"
    assert "does NOT start with this metadata, for" in result.stderr


def test_a_config_is_refused_with_the_line_to_type(made: Callable[[str], Path]) -> None:
    # F1016: 4.4.0 ended with "Invalid value 300 for configuration segment.bytes".
    result = metadata(made("13-3.9.2-on-4.4.0"), "--kafka", "4.4")
    assert result.exit_code == 1
    assert "ends: topic orders: segment.bytes=300: 300 is below 1048576" in result.stdout
    assert "--entity-name orders --delete-config segment.bytes" in result.stdout


def test_a_coordinator_that_does_not_load_is_a_finding(made: Callable[[str], Path]) -> None:
    # F1000 and F1002.
    result = metadata(made("06a-classic-then-member"), "--kafka", "4.4.0")
    assert result.exit_code == 1
    words = "wait: the group coordinator of Kafka 4.4 does not load __consumer_offsets-0: record "
    assert words in result.stdout
    assert "1 partition whose coordinator does NOT load" in result.stdout


def test_features_have_the_releases_that_read_them(made: Callable[[str], Path]) -> None:
    # F1010 and F1011.
    result = metadata(made("00-control"), "--format", "json")
    rows = {row["feature"]: row for row in map(json.loads, result.stdout.splitlines())}
    assert rows["metadata.version"]["level_name"] == "4.4-IV2"
    assert rows["share.version"]["least_kafka_version"] == "4.4"
    assert rows["group.version"]["least_kafka_version"] == "4.0"


def test_other_rows_and_unknown_versions_are_refused(made: Callable[[str], Path]) -> None:
    folder = made("00-control")
    directory = str(folder / "d1")
    other = CliRunner().invoke(kafkalog, ["metadata", directory, "--topics", "--kafka", "4.1"])
    assert (other.exit_code, "needs --by feature" in other.stderr) == (2, True)
    result = metadata(folder, "--kafka", "5.0")
    assert result.exit_code == 2
    assert "expected one of 3.9, 4.0, 4.1, 4.2, 4.3, 4.4" in result.stderr
    beside = metadata(folder, "--kafka", "4.1", "--commands")
    assert beside.exit_code == 2
