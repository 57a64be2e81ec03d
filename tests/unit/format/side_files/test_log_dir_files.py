"""Cluster ids and the mark of a clean stop. F82, F83."""

from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.log_dir_files import read_clean_shutdown, write_clean_shutdown
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.logs.log_dirs import add_partition


@pytest.mark.parametrize(
    "cluster_id",
    [
        pytest.param("Yq3xT-1_a", id="what KIP-78 has in mind"),
        pytest.param("Yq3xT-1_a5678901234567w", id="23 characters"),
        pytest.param("f5b6a1f0-77b9-4d1e-9e0c-1ad56c7e2d11", id="a UUID as Java prints it"),
        pytest.param("not an id", id="any text"),
        pytest.param(None, id="none"),
    ],
)
def test_a_cluster_may_have_any_id(
    cluster_id: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F82: MetaProperties and ClusterIdZNode of Kafka's source take any text.
    line = "" if cluster_id is None else f"cluster.id={cluster_id}\n"
    (tmp_path / "meta.properties").write_text(f"version=1\nnode.id=1\n{line}")
    add_partition(tmp_path, "orders-0", 0)
    (log,) = find_partitions([str(tmp_path)])
    assert (log.log_dir.cluster_id, caplog.records) == (cluster_id, [])


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
