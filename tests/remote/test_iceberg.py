"""Iceberg tables in an object store, with a catalog on this machine."""

from pathlib import Path

import pytest
from pyiceberg import catalog
from pyiceberg.utils.config import Config

from kafkalog.errors import StatePositionError
from kafkalog.lake.iceberg.iceberg_maintenance import (
    expire_snapshots,
    leftover_files,
    old_snapshots,
    optimize,
)
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from kafkalog.lake.layout import PartitionBy, TableLayout
from tests.remote.gateway import Gateway
from tests.remote.stores import Store, needs_store
from tests.support.lake.exports import exported, planned_run, sorted_rows, view_rows, written_files
from tests.support.lake.iceberg_tables import scanned
from tests.support.repository import SHOP

pytestmark = needs_store
_AFTER_ALL_MS = 4_102_444_800_000


@pytest.fixture
def bucket(gateway: Gateway, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a bucket that catalog `lake` of the configuration keeps tables in."""
    uri, folder = store.bucket()
    # The proxy passes on what reads; these tests write.
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{gateway.port}")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/lake.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", uri)
    # pyiceberg reads its configuration when it is imported.
    monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())
    return folder


def test_runs_and_their_maintenance_in_an_object_store(bucket: Path) -> None:
    table = IcebergTable(catalog="lake", layout=TableLayout((PartitionBy.TOPIC,)))
    exported(table, [SHOP], subscribe="orders")
    late = IcebergTable(catalog="lake")
    run = planned_run(late, [SHOP])
    files = written_files(late, [SHOP], run)
    exported(table, [SHOP], full_refresh=True)
    assert sorted_rows(scanned(table)) == view_rows([SHOP])
    with pytest.raises(StatePositionError, match="another run has written meanwhile"):
        late.commit(files, run)
    optimize(table)
    expire_snapshots(table, old_snapshots(table, _AFTER_ALL_MS))
    named = {task.file.file_path for task in table.existing().scan().plan_files()}
    leftovers = {found.path for found in leftover_files(table, _AFTER_ALL_MS)}
    kept = {f"s3://{found}" for found in leftovers}
    assert named.isdisjoint(kept)
    stored = {path.relative_to(bucket.parent) for path in bucket.rglob("*.parquet")
              if "ingested_records" in path.parts}  # fmt: skip
    assert {f"s3://{path}" for path in stored} == named | kept
    assert sorted_rows(scanned(table)) == view_rows([SHOP])
    table.catalog.close()
    late.catalog.close()
