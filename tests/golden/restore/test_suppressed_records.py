"""Records of erased persons are not in what is restored: docs/restore.md F1200, docs/erasure.md
F1124."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.reading.log_reader import LogReader
from tests.support.golden.restored_copies import AS_OF, disk_with_orders, orders_in
from tests.support.messages.avro_orders import ORDERS, PERSON, SCHEMA

CHUNK = 1024 * 1024
# Keys of topics with LogAppendTime and zstd, of transactions, and of a compacted topic; a path.
KEYS = (b"e58", b"acct14", b"s4")
USER = b'"user": "u16"'
IDENTIFIERS = '{"key": "e58"}\nacct14\ns4\n{"value-path": "$.user", "value": "u16"}\n'


def restore(inputs: list[Path], *arguments: str) -> Result:
    paths = map(str, inputs)
    return CliRunner().invoke(kafkalog, ["restore", *paths, "--as-of", AS_OF, *arguments])


@pytest.fixture(scope="module")
def identifiers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("identifiers") / "erased.txt"
    path.write_text(IDENTIFIERS)
    return path


@pytest.fixture(scope="module")
def whole(inputs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole") / "cluster"
    restore(inputs, "--to", str(directory))
    return directory


@pytest.fixture(scope="module")
def suppressed(
    inputs: list[Path], identifiers: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    directory = tmp_path_factory.mktemp("suppressed") / "cluster"
    result = restore(inputs, "--to", str(directory), "--suppress", str(identifiers))
    assert result.exit_code == ExitCode.FINDINGS, result.output
    return directory, result.output


def records(directory: Path) -> Iterator[tuple[str, int, int, bytes | None, bytes | None]]:
    """Topic, partition, offset, key and value of each record of topics that people write."""
    for log in find_partitions([str(directory / "data")]):
        reader = LogReader(log)
        for chunk in reader.chunks(reader.start_offset, CHUNK):
            for record in chunk.records():
                place = log.topic or "", log.partition or 0, record.offset
                if not place[0].startswith("__"):
                    yield *place, record.key, record.value


def is_a_persons(key: bytes | None, value: bytes | None) -> bool:
    return key in KEYS or USER in (value or b"")


def test_only_suppressed_records_are_left_out(whole: Path, suppressed: tuple[Path, str]) -> None:
    before, after = [*records(whole)], [*records(suppressed[0])]
    assert after == [row for row in before if not is_a_persons(*row[3:])]
    topics = {row[0] for row in before if is_a_persons(*row[3:])}
    assert topics == {"derived", "events", "state", "transfers"}


def test_the_log_keeps_its_end_and_its_transactions(
    whole: Path, suppressed: tuple[Path, str]
) -> None:
    ends = [
        {log.name: LogReader(log).end_offset() for log in find_partitions([str(each / "data")])}
        for each in (whole, suppressed[0])
    ]
    assert {**ends[0], "__cluster_metadata-0": 0} == {**ends[1], "__cluster_metadata-0": 0}


def test_the_count_of_each_topic_is_said(whole: Path, suppressed: tuple[Path, str]) -> None:
    counts: dict[str, int] = defaultdict(int)
    for topic, _, _, key, value in records(whole):
        counts[topic] += is_a_persons(key, value)
    directory, output = suppressed
    manifest: dict[str, Any] = json.loads((directory / "manifest.json").read_text())
    found = {row["topic"]: row["records"] for row in manifest["suppressed"] if row["records"]}
    assert found == {topic: count for topic, count in counts.items() if count}
    for topic, count in found.items():
        assert f"suppressed: {count} records of topic {topic}" in output


def test_indexes_and_checksums_are_those_of_what_was_written(suppressed: tuple[Path, str]) -> None:
    result = CliRunner().invoke(kafkalog, ["restore", "--verify", str(suppressed[0])])
    assert result.exit_code == ExitCode.DONE
    result = CliRunner().invoke(kafkalog, ["check", str(suppressed[0] / "data")])
    assert result.exit_code == ExitCode.DONE, result.output


def test_a_file_that_cannot_be_read_is_refused(inputs: list[Path], tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    result = restore(inputs, "--to", str(tmp_path / "to"), "--suppress", absent)
    assert result.exit_code == ExitCode.WRONG_ARGUMENTS
    assert "--suppress" in result.output


@pytest.mark.parametrize("is_given", [False, True])
def test_values_are_decoded_by_the_schemas_in_the_copies_or_in_a_directory(
    is_given: bool, inputs: list[Path], tmp_path: Path
) -> None:
    # F1124, F1262: the order whose schema is not known is kept, and named.
    disk, person = disk_with_orders(inputs, tmp_path), tmp_path / "person"
    person.write_text(PERSON)
    given = ["--topic", "plain", "--to", str(tmp_path / "to"), "--suppress", str(person)]
    if is_given:
        # Another id than in `_schemas` of the copies: the registry that is given counts alone.
        (tmp_path / "9.avsc").write_text(SCHEMA)
        given += ["--schema-registry", str(tmp_path)]
    result = CliRunner().invoke(kafkalog, ["restore", str(disk), *given])
    assert "suppressed: 1 record of topic plain" in result.output
    undecoded = "2 values" if is_given else "1 value"
    assert f"plain: {undecoded} not decoded" in result.output
    assert orders_in(tmp_path / "to") == [*(ORDERS[:2] if is_given else ORDERS[1:])]


def test_a_registry_is_given_only_with_persons(inputs: list[Path], tmp_path: Path) -> None:
    result = restore(inputs, "--to", str(tmp_path / "to"), "--schema-registry", str(tmp_path))
    assert result.exit_code == ExitCode.WRONG_ARGUMENTS
    assert "--schema-registry" in result.output
