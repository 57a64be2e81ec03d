"""`format("zookeeper")`: real data directories and made ones as DataFrames."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from kafkalog.schemas import table_json
from kafkalog.views.options.zookeeper.zookeeper_options import ZookeeperView
from kafkalog.zookeeper.transactions import CreateSession
from kafkalog.zookeeper.znode import ttl_owner
from tests.support.repository import Unpack
from tests.support.zookeeper.zookeeper_files import (
    ROOT,
    Node,
    create,
    log_bytes,
    snapshot_bytes,
    transaction,
    write_data_dir,
)

TABLES = {
    **{view: view.value for view in ZookeeperView},
    ZookeeperView.SESSIONS: "zookeeper_sessions",
    ZookeeperView.FAULTS: "zookeeper_faults",
}


def read(spark: SparkSession, path: Path | str, **options: str) -> DataFrame:
    return spark.read.format("zookeeper").options(**options).load(str(path))


def data_of(row: dict[str, Any]) -> bytes | None:
    return None if row["data"] is None else base64.b64decode(row["data"])


@pytest.mark.deep
@pytest.mark.parametrize("view", ZookeeperView)
def test_views_have_the_columns_of_their_tables(
    view: ZookeeperView, spark: SparkSession, unpacked: Unpack
) -> None:
    folder = unpacked("kafka08.zookeeper") / "zookeeper-live"
    frame = read(spark, folder, view=view.value)
    assert frame.schema.jsonValue() == json.loads(table_json(TABLES[view]))
    rows = frame.collect()
    # Kafka 0.8 has no ACLs.
    assert bool(rows) == (view not in (ZookeeperView.FAULTS, ZookeeperView.CLUSTER_ACLS))
    assert {row["input_path"] for row in rows} <= {str(folder)}


def test_znodes_of_several_servers_equal_their_listings(
    spark: SparkSession, unpacked: Unpack
) -> None:
    roots = [unpacked(f"{name}.zookeeper") for name in ("kafka08", "kafka39zk")]
    frame = spark.read.format("zookeeper").load([str(root / "zookeeper-live") for root in roots])
    found = frame.select("input_path", "path", "mzxid", "children", "data").collect()
    expected = {
        (str(root / "zookeeper-live"), row["path"], row["mzxid"], row["numChildren"], data_of(row))
        for root in roots
        for row in map(json.loads, (root / "golden" / "znodes.jsonl").read_text().splitlines())
    }
    assert {tuple(row) for row in found} == expected
    assert len(found) == len(expected)


@pytest.mark.deep
def test_only_asked_columns_are_made(spark: SparkSession, unpacked: Unpack) -> None:
    folder = unpacked("kafka08.zookeeper") / "zookeeper-live"
    frame = read(spark, folder, columns="mtime_ms,path", znode="/brokers/ids")
    assert frame.columns == ["mtime_ms", "path"]
    assert {row.path for row in frame.collect()} == {"/brokers/ids", "/brokers/ids/0"}
    typed = (
        spark.read.format("zookeeper")
        .schema("path STRING, acl ARRAY<STRUCT<perms: INT, scheme: STRING, id: STRING>>")
        .load(str(folder))
    )
    assert {tuple(row.acl[0]) for row in typed.collect()} == {(31, "world", "anyone")}


@pytest.mark.deep
def test_owners_are_named(spark: SparkSession, tmp_path: Path) -> None:
    owners = {"p": 0, "e": 0x1000, "c": -(2**63), "t": ttl_owner(60_000)}
    nodes = [
        Node(f"/{name}".encode(), None, ephemeral_owner=owner) for name, owner in owners.items()
    ]
    write_data_dir(tmp_path, {1: snapshot_bytes([ROOT, *nodes])})
    rows = read(spark, tmp_path).select("path", "owner_kind", "ttl_ms", "data").collect()
    assert {tuple(row) for row in rows} == {
        ("/", "persistent", None, b""),
        ("/p", "persistent", None, None),
        ("/e", "ephemeral", None, None),
        ("/c", "container", None, None),
        ("/t", "ttl", 60_000, None),
    }


@pytest.mark.deep
def test_a_past_moment_is_requested_by_zxid_or_by_time(
    spark: SparkSession, unpacked: Unpack
) -> None:
    folder = unpacked("kafka08.zookeeper") / "zookeeper-live"
    history = read(spark, folder, view="znode_history", znode="/admin/delete_topics").collect()
    made, gone = (row for row in history if row.path.endswith("o8.deleted"))
    assert (made.change, gone.change) == ("create", "delete")

    def is_there(**options: str) -> bool:
        frame = read(spark, folder, **options)
        return frame.where("path = '/admin/delete_topics/o8.deleted'").count() == 1

    assert is_there(zxidAsOf=str(made.zxid))
    assert not is_there(zxidAsOf=hex(gone.zxid))
    assert is_there(timestampAsOf=str(gone.time_ms - 1))
    assert not is_there(timestampAsOf=str(gone.time_ms))
    assert not is_there()


@pytest.mark.deep
def test_a_moment_that_the_files_do_not_reach_is_an_error(
    spark: SparkSession, unpacked: Unpack
) -> None:
    folder = unpacked("kafka08.zookeeper") / "zookeeper-live"
    with pytest.raises(PythonException, match="ends at zxid 0x13e"):
        read(spark, folder, zxidAsOf="0x200").count()
    with pytest.raises(PythonException, match="has no state at 1 ms"):
        read(spark, folder, timestampAsOf="1").count()


def test_damage_is_an_error_or_is_passed_over(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(unpacked("kafka08.zookeeper") / "zookeeper-live", folder)
    newest = folder / "version-2" / "snapshot.13a"
    content = bytearray(newest.read_bytes())
    content[-40] ^= 1
    newest.write_bytes(content)
    with pytest.raises(PythonException, match=r"snapshot\.13a: position .* seal.*view=faults"):
        read(spark, folder).count()
    sound = read(spark, unpacked("kafka08.zookeeper") / "zookeeper-live").drop("input_path")
    passed = read(spark, folder, mode="PERMISSIVE").drop("input_path")
    assert passed.exceptAll(sound).count() == 0
    assert passed.count() == sound.count()
    faults = read(spark, folder, view="faults").collect()
    assert [(row.file, row.fault, row.is_damage) for row in faults] == [(str(newest), "seal", True)]


@pytest.mark.deep
def test_what_was_being_written_is_not_an_error(spark: SparkSession, tmp_path: Path) -> None:
    story = [transaction(1, create("/a", 1)), transaction(2, CreateSession(1))]
    half = snapshot_bytes([ROOT])[:60]
    logs = {1: log_bytes(story)[:-5]}
    write_data_dir(tmp_path, {0: snapshot_bytes([ROOT]), 2: half}, logs)
    assert {row.path for row in read(spark, tmp_path).collect()} == {"/", "/a"}
    faults = read(spark, tmp_path, view="faults").collect()
    assert {(row.fault, row.is_damage) for row in faults} == {("truncated", False)}


@pytest.mark.deep
def test_wrong_columns_are_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no_such_column"):
        read(spark, tmp_path, columns="no_such_column").count()
