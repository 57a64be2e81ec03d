"""What a stream makes of logs that are cut, replaced or gone. F523."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from kafkalog.errors import DataLossError
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.storage.files import files
from tests.support.logs.streamed_logs import DrivenStream, StreamedLog, grown

KEY = "orders", 0


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return tmp_path / "log"


def test_a_log_that_ends_before_it_was_read_up_to_is_data_loss(log_dir: Path) -> None:
    # F523
    log = grown(log_dir, 4)
    size = log.log_file.stat().st_size
    log.append(1, 4)
    strict = DrivenStream(log_dir, startingOffsets="earliest")
    lenient = DrivenStream(log_dir, startingOffsets="earliest", failOnDataLoss="false")
    strict.trigger()
    lenient.trigger()
    log.log_file.write_bytes(log.log_file.read_bytes()[:size])
    for stream in (strict, strict):  # a restart tells the same
        with pytest.raises(DataLossError, match=r"orders-0 .* ends at offset 4 and .* up to 8"):
            stream.trigger()
        stream.restart()
    lenient.trigger()
    assert lenient.position == '{"orders": {"0": 4}}'


def test_a_log_that_was_cut_and_written_again_is_data_loss(log_dir: Path) -> None:
    # F523
    log = grown(log_dir, 4)
    kept = log.log_file.read_bytes()
    log.append(1, 4)
    stream = DrivenStream(log_dir, startingOffsets="earliest")
    stream.trigger()
    others = [Record(offset, 7, 0, b"other", b"other") for offset in range(4, 30)]
    log.log_file.write_bytes(kept + write_batch(others, BatchFields(leader_epoch=1)))
    with pytest.raises(DataLossError, match=r"up to offset 8, and what was its last batch"):
        stream.trigger()


def test_a_topic_that_was_created_again_is_data_loss(log_dir: Path) -> None:
    # F523
    log = grown(log_dir, 4)
    (log.path / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    stream = DrivenStream(log_dir, startingOffsets="earliest")
    stream.trigger()
    shutil.rmtree(log.path)
    log = grown(log_dir, 6, 6)
    (log.path / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg\n")
    with pytest.raises(DataLossError, match="it was created again: a new checkpoint location"):
        stream.trigger()


def test_a_partition_that_is_missing_is_data_loss_and_begins_again_if_it_may(log_dir: Path) -> None:
    # F523
    log = grown(log_dir, 4)
    grown(log_dir, 1, partition=1)
    strict = DrivenStream(log_dir, startingOffsets="earliest")
    lenient = DrivenStream(log_dir, startingOffsets="earliest", failOnDataLoss="false")
    strict.trigger()
    lenient.trigger()
    shutil.rmtree(log.path)
    with pytest.raises(
        DataLossError, match="orders-0 was read up to offset 4 and no longer exists"
    ):
        strict.trigger()
    lenient.trigger()
    assert lenient.position == '{"orders": {"1": 1}}'
    grown(log_dir, 2)
    lenient.trigger()
    assert lenient.read[KEY] == [0, 1, 2, 3, 0, 1]


def test_a_topic_that_is_deleted_while_directories_are_listed_is_missing_and_no_error(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # F523
    log = grown(log_dir, 4)
    other = grown(log_dir, 4, topic="payments")
    stream = DrivenStream(log_dir, startingOffsets="earliest", failOnDataLoss="false")
    stream.trigger()
    log.append(1, 2)
    listed = files.list_directory

    def list_and_delete(path: str) -> Any:
        entries = listed(path)
        shutil.rmtree(other.path, ignore_errors=True)
        return entries

    monkeypatch.setattr(files, "list_directory", list_and_delete)
    stream.trigger()
    assert stream.offsets == {KEY: 6}


def test_segments_that_were_deleted_before_they_were_read_are_data_loss(log_dir: Path) -> None:
    # F523
    log = grown(log_dir, 4)
    strict = DrivenStream(log_dir, startingOffsets="earliest")
    lenient = DrivenStream(log_dir, startingOffsets="earliest", failOnDataLoss="false")
    strict.trigger()
    lenient.trigger()
    log.append(1, 4)
    log.roll()
    log.append(1, 2)
    log.delete_up_to(8)
    with pytest.raises(DataLossError, match=r"offset 4 of orders-0 .* holds 8 up to"):
        strict.trigger()
    lenient.trigger()
    assert lenient.read == {KEY: [0, 1, 2, 3, 8, 9]}


def test_a_new_partition_that_has_lost_its_start_is_data_loss(log_dir: Path) -> None:
    # F523, as in Spark's Kafka source
    grown(log_dir, 4)
    stream = DrivenStream(log_dir)
    stream.trigger()
    other = StreamedLog(log_dir, "orders", 1)
    other.append(1, 3)
    other.roll()
    other.append(1, 3)
    other.delete_up_to(3)
    with pytest.raises(DataLossError, match=r"orders-1 .* is new to the stream and begins at .* 3"):
        stream.trigger()
