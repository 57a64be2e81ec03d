"""Views of the state of clusters whose metadata is in ZooKeeper: several in an ensemble, and znodes
that cannot be read. The JSON is that of F440, F831 and F830."""

import json
from pathlib import Path
from typing import Any

import pytest

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.errors import CorruptDataError
from kafkalog.views.options.zookeeper.zookeeper_options import read_zookeeper_options
from kafkalog.views.reading.zookeeper_reading import read_data_dir
from kafkalog.zookeeper.data_dir import find_data_dirs
from tests.support.zookeeper.zookeeper_files import ROOT, Node, snapshot_bytes, write_data_dir

ALLOWED = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}
TOPIC: dict[str, object] = {"version": 1, "partitions": {"0": [1]}}
ZNODES: dict[str, object] = {
    "/brokers/topics/orders": TOPIC,
    "/cluster/id": {"version": "1", "id": "own"},
    "/config/topics/orders": {"version": 1, "config": {"retention.ms": "1"}},
    "/config/brokers/1": {"version": 1, "config": {"ssl.key.password": "secret"}},
    "/kafka-acl/Topic/orders": {"version": 1, "acls": [ALLOWED]},
    "/second/brokers/topics/bills": TOPIC,
}


def view_rows(folder: Path, view: str, mode: str, **more: object) -> list[dict[str, Any]]:
    znodes = {path: json.dumps(data).encode() for path, data in {**ZNODES, **more}.items()}
    above = {"/".join(path.split("/")[:depth]) for path in znodes for depth in range(2, 6)}
    nodes = [Node(path.encode(), znodes.get(path, b"")) for path in sorted(above | znodes.keys())]
    path = str(write_data_dir(folder, {5: snapshot_bytes([ROOT, *nodes])}))
    (data_dir,) = find_data_dirs([path])
    options = read_zookeeper_options({"path": path, "view": view, "mode": mode})
    columns = tuple(field.name for field in arrow_schema(view))
    batches = read_data_dir(data_dir, options, columns)
    return [row for batch in batches for row in batch.to_pylist(maps_as_pydicts="strict")]


def test_rows_are_of_each_cluster_in_the_ensemble(tmp_path: Path) -> None:
    topics = view_rows(tmp_path, "cluster_topics", "FAILFAST")
    names = ("cluster_id", "chroot", "as_of_zxid", "topic", "configs")
    assert [tuple(row[name] for name in names) for row in topics] == [
        ("own", "", 5, "orders", {"retention.ms": "1"}),
        (None, "/second", 5, "bills", {}),
    ]
    configs = view_rows(tmp_path, "cluster_configs", "FAILFAST")
    assert {(row["resource_name"], row["value"]) for row in configs} == {
        ("orders", "1"),
        ("1", "***"),
    }
    (acl,) = view_rows(tmp_path, "cluster_acls", "FAILFAST")
    assert (acl["principal"], acl["resource_name"], acl["chroot"]) == ("User:a", "orders", "")


def test_a_znode_that_cannot_be_read_is_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad: dict[str, object] = {"/second/brokers/topics/bad": [1]}
    with pytest.raises(CorruptDataError, match="/second/brokers/topics/bad: no JSON object"):
        view_rows(tmp_path, "cluster_topics", "FAILFAST", **bad)
    found = view_rows(tmp_path, "cluster_topics", "PERMISSIVE", **bad)
    assert [row["topic"] for row in found] == ["orders", "bills"]
    assert "/second/brokers/topics/bad" in caplog.text
