"""Which of the directories that a broker has marked are served beside the others."""

import shutil
from pathlib import Path

import pytest

from kafkalog.errors import LogDirError
from kafkalog.messages.value_types import uuid_text
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.testing import LogDirectory

MARK = "0123456789abcdef0123456789abcdef"


def log_dir(path: Path, records: int = 1, orders_id: int = 1) -> Path:
    directory = LogDirectory(path)
    ids = {"orders": uuid_text(bytes([orders_id] * 16)), "customers": None}
    for name, topic_id in ids.items():
        topic = directory.topic(name, partitions=2, topic_id=topic_id)
        topic.records([(None, str(each)) for each in range(records)])
    return Path(directory.write())


def mark(directory: Path, name: str, kind: str, number: int = 0) -> Path:
    marked = directory / f"{name}.{number:x}{MARK[1:]}-{kind}"
    (directory / name).rename(marked)
    return marked


def served(*paths: Path) -> dict[str, list[int]]:
    cluster = ServedCluster([str(path) for path in paths], with_deleted=True)
    return {name: [*topic.partitions] for name, topic in cluster.topics.items()}


def test_deleted_and_stray_directories_have_plain_names(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "data", records=3)
    ids = {name: topic.id for name, topic in ServedCluster([str(path)]).topics.items()}
    mark(path, "orders-0", "delete")
    mark(path, "orders-1", "stray")
    assert [*ServedCluster([str(path)]).topics] == ["customers"]
    assert served(path) == {"customers": [0, 1], "orders": [0, 1]}
    cluster = ServedCluster([str(path)], with_deleted=True)
    assert cluster.topics["orders"].id == ids["orders"]
    log = cluster.partition("orders", 0)
    assert log is not None
    assert (log.start_offset, log.end_offset) == (0, 3)


def test_a_marked_directory_may_be_given_alone(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "data")
    marked = mark(path, "orders-0", "delete")
    assert served(marked) == {"orders": [0]}
    with pytest.raises(LogDirError, match="no partition to serve"):
        ServedCluster([str(marked)])


def test_the_replicas_of_a_deleted_topic_are_one_partition(tmp_path: Path) -> None:
    first = log_dir(tmp_path / "1")
    second = tmp_path / "2"
    shutil.copytree(first, second)
    meta = second / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1\n", "node.id=2\n"))
    for path in (first, second):
        mark(path, "orders-0", "delete")
    cluster = ServedCluster([str(first), str(second)], with_deleted=True)
    log = cluster.partition("orders", 0)
    assert log is not None
    assert len(log.logs) == 2


@pytest.mark.parametrize("given", [0, 1])
def test_of_two_topics_with_one_name_none_hides_the_other(
    tmp_path: Path, given: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = log_dir(tmp_path / "data")
    marked = []
    for number in range(2):
        shutil.rmtree(path / "orders-1")
        marked.append(mark(path, "orders-0", "delete", number))
        again = log_dir(tmp_path / f"again-{number}", orders_id=number + 2)
        shutil.copytree(again, path, dirs_exist_ok=True)
    # Created again, it is the one that counts.
    assert served(path) == {"customers": [0, 1], "orders": [0, 1]}
    assert "there is a partition orders-0 that is not deleted" in caplog.text
    shutil.rmtree(path / "orders-0")
    assert served(path) == {"customers": [0, 1], "orders": [1]}
    assert "there is another topic orders that is not deleted" in caplog.text
    shutil.rmtree(path / "orders-1")
    assert served(path) == {"customers": [0, 1]}
    assert "several topics were named orders" in caplog.text
    assert served(marked[given]) == {"orders": [0]}


def test_two_copies_of_one_broker_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = log_dir(tmp_path / "data")
    shutil.copytree(path / "orders-0", path / "orders-0.copy")
    mark(path, "orders-0", "delete")
    (path / "orders-0.copy").rename(path / "orders-0")
    mark(path, "orders-0", "delete", 1)
    assert served(path) == {"customers": [0, 1], "orders": [1]}
    for other in path.glob("orders-1"):
        shutil.rmtree(other)
    assert served(path) == {"customers": [0, 1]}
    assert "are the same partition, and both say that they are of broker 1" in caplog.text
