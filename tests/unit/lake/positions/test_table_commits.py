"""What commits of Iceberg tables say of positions in topics: F1241 and F1242. The names of the
properties are those that the sinks of Spark and of Kafka Connect write."""

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from kafkalog.errors import StatePositionError
from kafkalog.lake.positions.table_commits import catalog_commits, is_table, table_commits
from kafkalog.messages.clients.kept_positions import Keeper
from tests.support.lake.iceberg_tables import configure_catalog

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})
QUERY = "9fa73c46-8900-474b-8bc0-7d12dda17f2d"
CONTROL = "kafka.connect.offsets.control.orders.cg-control-sink"


def written(folder: Path, *summaries: Mapping[str, str]) -> Path:
    """A table with a snapshot for each of these summaries, by pyiceberg."""
    lake = SqlCatalog(
        "lake", uri=f"sqlite:///{folder}/lake.db", warehouse=f"file://{folder}/warehouse"
    )
    lake.create_namespace("shop")
    table = lake.create_table("shop.orders", schema=ROWS.schema)
    for summary in summaries:
        table.append(ROWS, snapshot_properties=dict(summary))
    return Path(table.location().removeprefix("file://"))


def test_the_newest_batch_of_a_query_counts(tmp_path: Path) -> None:
    batches = [
        {"spark.sql.streaming.queryId": QUERY, "spark.sql.streaming.epochId": str(number)}
        for number in range(3)
    ]
    found = table_commits(str(written(tmp_path, *batches, {})))
    assert found is not None
    assert (found.keeper, found.positions) == (Keeper.ICEBERG, [])
    assert {query: batch for query, (batch, _) in found.batches.items()} == {QUERY: 2}


def test_connect_keeps_offsets_of_its_control_topic(tmp_path: Path) -> None:
    path = written(tmp_path, {CONTROL: '{"0": 3}'}, {CONTROL: '{"0": 5, "1": 2}'})
    found = table_commits(str(path))
    assert found is not None
    for topics in (["control", "control.orders"], ["control.orders", "orders"]):
        positions = [*found.control_positions(topics)]
        assert {(each.topic, each.partition, each.next_offset) for each in positions} == {
            ("control.orders", 0, 5),
            ("control.orders", 1, 2),
        }
        assert {each.name for each in positions} == {"control topic of cg-control-sink"}
    # Of a topic that is not there the name ends at the last dot.
    (name,) = {each.topic for each in found.control_positions([])}
    assert name == "control.orders"


def test_a_table_of_a_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, {CONTROL: '{"0": 3}'})
    configure_catalog(monkeypatch, tmp_path)
    found = catalog_commits("lake", "shop.orders")
    assert found.path == "lake:shop.orders"
    assert {name: offsets for name, (offsets, _) in found.control_offsets.items()} == {
        CONTROL.removeprefix("kafka.connect.offsets."): {0: 3}
    }
    with pytest.raises(StatePositionError, match=r"catalog lake has no table shop\.others"):
        catalog_commits("lake", "shop.others")


def test_what_is_no_table_and_what_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text("a file")
    assert not is_table(str(tmp_path))
    assert table_commits(str(tmp_path)) is None
    assert not is_table(str(tmp_path / "nothing"))
    path = written(tmp_path, {CONTROL: '{"0": 3}'})
    newest = max((path / "metadata").glob("*.metadata.json"))
    for text in ("{", json.dumps({"snapshots": 3}), json.dumps([])):
        newest.write_text(text)
        with pytest.raises(StatePositionError, match="damaged"):
            table_commits(str(path))


def test_a_damaged_delta_commit(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text("{")
    with pytest.raises(StatePositionError, match="damaged"):
        table_commits(str(tmp_path))
