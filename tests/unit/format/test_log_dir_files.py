"""Cluster ids and the mark of a clean stop. F82, F83."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.format.log_dir_files import (
    is_cluster_id,
    read_clean_shutdown,
    write_clean_shutdown,
)
from kafkalog.storage.log_dir import find_partitions
from tests.unit.storage.log_dirs import add_meta_properties, add_partition


@pytest.mark.parametrize("text", ["E00000000000000000005w", "Yq3xT-1_a", "a", "-_" * 11])
def test_a_cluster_id_is_up_to_22_characters(text: str) -> None:
    # F82.
    assert is_cluster_id(text)


@pytest.mark.parametrize("text", ["", "a" * 23, "a=b", "a b", "ä", "a/b", "a+b", "a\n"])
def test_anything_else_is_no_cluster_id(text: str) -> None:
    # F82.
    assert not is_cluster_id(text)


@pytest.mark.parametrize(("cluster_id", "told"), [("Yq3xT-1_a", 0), ("not an id", 1)])
def test_a_cluster_id_that_is_none_is_told_and_used(
    cluster_id: str, told: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F82.
    add_meta_properties(tmp_path, cluster_id=cluster_id)
    add_partition(tmp_path, "orders-0", 0)
    (log,) = find_partitions([str(tmp_path)])
    assert log.log_dir.cluster_id == cluster_id
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * told


@pytest.mark.parametrize(
    ("text", "epoch"), [("", None), ('{"version":0,"brokerEpoch":378}', 378),
                        ('{"version":0,"brokerEpoch":-1}', -1)]
)  # fmt: skip
def test_a_clean_stop_tells_the_epoch_of_the_broker(text: str, epoch: int | None) -> None:
    # F83.
    assert read_clean_shutdown(text) == epoch
    assert write_clean_shutdown(epoch) == text


@pytest.mark.parametrize(
    "text",
    ["x", "[]", "{}", "null", '{"version":1,"brokerEpoch":1}', '{"version":0,"brokerEpoch":"1"}'],
)
def test_a_mark_that_cannot_be_read_is_one_typed_error(text: str) -> None:
    # F83.
    with pytest.raises(CorruptDataError):
        read_clean_shutdown(text)
