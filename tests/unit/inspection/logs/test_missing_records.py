"""Which records of an internal topic are known and not there. Rule: docs/format.md F940."""

import shutil
from pathlib import Path

import pytest

from kafkalog.inspection.logs.missing_records import missing_records, missing_words
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.testing import LogDirectory


def committed(path: Path, commits: int, node_id: int = 1) -> Path:
    made = LogDirectory(path, node_id=node_id)
    for offset in range(commits):
        made.commit_offsets("billing", {("orders", 0): offset})
    return Path(made.write())


def found(*paths: Path) -> list[tuple[int, int, int]]:
    logs = find_partitions([str(path) for path in paths])
    return [
        (each.partition, each.first_offset, each.end_offset)
        for each in missing_records(logs, CONSUMER_OFFSETS)
    ]


def test_of_a_whole_log_nothing_is_missing(tmp_path: Path) -> None:
    assert found(committed(tmp_path / "a", 4)) == []


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_that_ends_before_its_checkpoints_lacks_the_rest(
    tmp_path: Path, is_clean: bool
) -> None:
    path = committed(tmp_path / "a", 4)
    log = path / f"{CONSUMER_OFFSETS}-0" / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[: log.stat().st_size * 3 // 4])
    if not is_clean:
        (path / ".kafka_cleanshutdown").unlink()
    assert found(path) == [(0, 3, 4)]


def test_a_log_without_a_file_lacks_all_of_it(tmp_path: Path) -> None:
    path = committed(tmp_path / "a", 4)
    (path / f"{CONSUMER_OFFSETS}-0" / f"{0:020d}.log").unlink()
    (missing,) = missing_records(find_partitions([str(path)]), CONSUMER_OFFSETS)
    assert missing.words() == (
        f"__consumer_offsets-0: offsets 0 to 3 are missing: the checkpoints of {path} say that the "
        "log went on to 4"
    )
    assert missing_words([missing]) == "4 offsets are missing: 4 of __consumer_offsets-0"


def test_a_partition_that_only_checkpoints_name_is_missing(tmp_path: Path) -> None:
    path = committed(tmp_path / "a", 4)
    made = LogDirectory(tmp_path / "other", node_id=1)
    made.topic("orders").records([(None, "x")])
    other = Path(made.write())
    shutil.copytree(other / "orders-0", path / "orders-0")
    shutil.rmtree(path / f"{CONSUMER_OFFSETS}-0")
    assert found(path) == [(0, 0, 4)]
    # What is given by its own path leaves its neighbours out on purpose.
    assert found(path / "orders-0") == []


def test_nothing_is_missing_that_another_replica_has(tmp_path: Path) -> None:
    whole, cut = committed(tmp_path / "a", 4), committed(tmp_path / "b", 4, node_id=2)
    (cut / f"{CONSUMER_OFFSETS}-0" / f"{0:020d}.log").write_bytes(b"")
    assert found(cut) == [(0, 0, 4)]
    assert found(whole, cut) == []
