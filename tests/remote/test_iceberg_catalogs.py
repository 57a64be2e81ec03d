"""Iceberg tables in catalogs that a server keeps: Project Nessie, which speaks REST, and Glue as
moto answers it. Their files are in an object store. Rules: F660 to F665, F915."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyiceberg import catalog
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

from kafkalog.command_line.main import kafkalog
from kafkalog.errors import StatePositionError
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from tests.remote.catalog_servers import GLUE, glue, nessie, variables
from tests.remote.gateway import ACCESS_KEY, SECRET_KEY, Gateway
from tests.remote.stores import Store, needs_store
from tests.support.fetched_packages import fetched_packages
from tests.support.lake.exports import exported, planned_run, sorted_rows, view_rows, written_files
from tests.support.lake.iceberg_tables import (
    committed_at_once,
    rewritten_by_another_engine,
    scanned,
)
from tests.support.repository import ROOT, SHOP

pytestmark = needs_store
_REFUSED = "another run has written meanwhile, this one has written nothing: run it again"
_TOPIC_COUNTS = [("customers", 300), ("orders", 3186)]
# The newest DuckDB whose extensions are all packages of Python.
_DUCKDB = ("duckdb", *(f"{name}==1.4.4.20260205" for name in (
    "duckdb-ext-avro", "duckdb-ext-httpfs", "duckdb-ext-iceberg")), "duckdb==1.4.4")  # fmt: skip
_FROM_PYTHON = """
import sys
import kafkalog
from kafkalog.spark.session import job_session
with job_session("export", with_delta=False) as spark:
    given = {"format": "iceberg", "catalog": "lake", "table": sys.argv[2]}
    print([tuple(row) for row in kafkalog.export(spark, sys.argv[1], topics="orders", **given)])
    print([tuple(row) for row in kafkalog.export(spark, sys.argv[1], **given)])
    print([tuple(row) for row in kafkalog.export(spark, sys.argv[1], **given)])
"""
_BY_DUCKDB = """
import sys
from pathlib import Path
import duckdb
import duckdb_ext
folder = next(Path(next(iter(duckdb_ext.__path__))).rglob("iceberg.duckdb_extension")).parent
for name in ("avro", "httpfs", "iceberg"):
    duckdb.execute(f"LOAD '{folder / name}.duckdb_extension'")
for statement in sys.argv[1:]:
    found = duckdb.execute(statement).fetchall()
print(found)
"""


@pytest.fixture(scope="module", params=["rest", "glue"])
def properties(
    request: pytest.FixtureRequest, gateway: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """What pyiceberg has to know of a running catalog."""
    folder, bucket = tmp_path_factory.mktemp(request.param), f"lake-{request.param}"
    (gateway.root / bucket).mkdir()
    is_rest = request.param == "rest"
    with nessie(folder, gateway.port, bucket) if is_rest else glue(folder, bucket) as found:
        yield found


@pytest.fixture
def lake(
    properties: dict[str, str], gateway: Gateway, store: Store, monkeypatch: pytest.MonkeyPatch
) -> str:
    """A namespace of the test's own in catalog `lake` of the configuration."""
    # The proxy passes on what reads; these tests write.
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{gateway.port}")
    for name, value in variables(properties).items():
        monkeypatch.setenv(name, value)
    if properties["type"] == "glue":
        # pyiceberg's client of Glue, boto3. The environment's own packages come first.
        monkeypatch.setattr(sys, "path", [*sys.path, str(fetched_packages(*GLUE))])
    # pyiceberg reads its configuration when it is imported.
    monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())
    return f"raw_{uuid.uuid4().hex[:8]}"


def run(*arguments: str) -> list[str]:
    """What a command prints that ends well."""
    done = CliRunner().invoke(kafkalog, arguments)
    assert done.exit_code == 0, done.output
    assert SECRET_KEY not in done.output
    return done.stdout.splitlines()


def export(table: str, *arguments: str) -> list[str]:
    named = ("--catalog", "lake", "--table", table)
    return run("export", str(SHOP), "--format", "iceberg", *named, *arguments)


def stored(gateway: Gateway, table: IcebergTable) -> set[str]:
    """The URIs of the files of data that the bucket has of a table."""
    folder = gateway.root / table.directory.path.removeprefix("s3://")
    return {f"s3://{path.relative_to(gateway.root)}" for path in folder.rglob("*.parquet")}


def named(table: IcebergTable) -> set[str]:
    return {task.file.file_path for task in table.existing().scan().plan_files()}


def test_the_command_adds_what_is_new(lake: str) -> None:
    table = f"{lake}.records"
    assert export(table, "--topic", "orders")[-2:] == [
        "read 3,186 offsets of 3 partitions",
        f"tables: {table}",
    ]
    assert export(table)[-2] == "read 300 offsets of 1 partition"
    assert export(table) == ["nothing is new"]
    assert sorted_rows(scanned(IcebergTable(table, catalog="lake"))) == view_rows([SHOP])
    ranges = load_catalog("lake", **_client()).load_table(f"{lake}.records_manifest").scan()
    assert sum(row["rows"] for row in ranges.to_arrow().to_pylist()) == len(view_rows([SHOP]))


def _client() -> dict[str, str]:
    """What pyiceberg does not find in the environment itself."""
    return {"s3.endpoint": str(os.environ["AWS_ENDPOINT_URL"])}


def test_duckdb_reads_the_table(lake: str, properties: dict[str, str], gateway: Gateway) -> None:
    table = f"{lake}.records"
    export(table, "--topic", "orders", "--partition-by", "topic")
    export(table)
    secret = (
        f"CREATE SECRET (TYPE s3, KEY_ID '{ACCESS_KEY}', SECRET '{SECRET_KEY}', URL_STYLE 'path', "
        f"ENDPOINT '127.0.0.1:{gateway.port}', USE_SSL false, REGION 'us-east-1')"
    )
    location = IcebergTable(table, catalog="lake").existing().metadata_location
    attached = "SELECT 1"
    source = f"iceberg_scan('{location}')"
    if properties["type"] == "rest":
        attached = (
            f"ATTACH 'lake' AS lake (TYPE iceberg, ENDPOINT '{properties['uri']}', "
            "AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none')"
        )
        source = f"lake.{table}"
    rows = view_rows([SHOP])
    assert rows[0]["value"] is not None
    queries = {
        "SELECT topic, count(*)": ("GROUP BY topic ORDER BY topic", _TOPIC_COUNTS),
        'SELECT count(value), sum(octet_length(value)), sum("offset"), count(headers)': (
            "",
            [
                (
                    sum(row["value"] is not None for row in rows),
                    sum(len(row["value"] or b"") for row in rows),
                    sum(row["offset"] for row in rows),
                    sum(row["headers"] is not None for row in rows),
                )
            ],
        ),
    }
    for query, (end, expected) in queries.items():
        assert by_duckdb(secret, attached, f"{query} FROM {source} {end}") == str(expected)


def by_duckdb(*statements: str) -> str:
    """The rows of the last of some statements."""
    done = subprocess.run(
        [sys.executable, "-c", _BY_DUCKDB, *statements],
        env={"PYTHONPATH": str(fetched_packages(*_DUCKDB)), "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_each_topic_has_a_table(lake: str) -> None:
    given = ("--catalog", "lake", "--table-per-topic")
    done = run("export", str(SHOP), "--format", "iceberg", *given)
    assert done[-1] == "tables: kafkalog.customers kafkalog.orders"
    assert run("export", str(SHOP), "--format", "iceberg", *given) == ["nothing is new"]
    found = [
        row
        for topic in ("customers", "orders")
        for row in sorted_rows(scanned(IcebergTable(topic, catalog="lake")))
    ]
    assert found == view_rows([SHOP])


def test_sparks_tasks_write_and_its_driver_commits(lake: str, tmp_path: Path) -> None:
    """`kafkalog.export`: the workers know of the store by the environment."""
    table = f"{lake}.records"
    done = subprocess.run(
        [sys.executable, "-c", _FROM_PYTHON, str(SHOP), table],
        cwd=ROOT,
        env={
            **{name: value for name, value in os.environ.items() if "SPARK" not in name},
            "PYTHONPATH": ":".join(filter(None, (str(ROOT), *sys.path[-1:]))),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        "[('orders', 3, 3186, 3186, 0)]",
        "[('customers', 1, 300, 300, 0)]",
        "[]",
    ]
    assert sorted_rows(scanned(IcebergTable(table, catalog="lake"))) == view_rows([SHOP])


def test_a_run_that_another_has_overtaken_changes_nothing(lake: str, gateway: Gateway) -> None:
    """F661."""
    table, late = (IcebergTable(f"{lake}.records", catalog="lake") for _ in range(2))
    exported(table, [SHOP], subscribe="orders")
    run = planned_run(late, [SHOP])
    files = written_files(late, [SHOP], run)
    exported(table, [SHOP])
    with pytest.raises(StatePositionError, match=_REFUSED):
        late.commit(files, run)
    assert sorted_rows(scanned(late)) == view_rows([SHOP])
    assert stored(gateway, table) == named(table)


def test_of_commits_at_once_one_is_done(
    lake: str, properties: dict[str, str], gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F661."""
    if properties["type"] == "glue":
        pytest.skip("moto's Glue takes a table's update whatever version it is of, AWS's does not")
    exported(IcebergTable(f"{lake}.records", catalog="lake"), [SHOP], subscribe="orders")
    tables = [IcebergTable(f"{lake}.records", catalog="lake") for _ in range(3)]
    outcomes = committed_at_once(tables, [SHOP], monkeypatch)
    assert sorted(outcomes) == [_REFUSED, _REFUSED, "done"]
    assert sorted_rows(scanned(tables[0])) == view_rows([SHOP])
    assert stored(gateway, tables[0]) == named(tables[0])


def test_a_range_is_replaced_and_another_engine_may_rewrite_files(lake: str) -> None:
    """F662, and F663 with Nessie, whose tables show one snapshot only."""
    table = IcebergTable(f"{lake}.records", catalog="lake")
    exported(table, [SHOP], subscribe="orders")
    exported(table, [SHOP], full_refresh=True)
    rewritten_by_another_engine(table.existing())
    assert not exported(IcebergTable(f"{lake}.records", catalog="lake"), [SHOP]).has_work
    assert sorted_rows(scanned(table)) == view_rows([SHOP])


def test_small_files_are_joined_and_what_no_snapshot_needs_is_removed(
    lake: str, properties: dict[str, str], gateway: Gateway
) -> None:
    """F664, F665 and F915."""
    name = f"{lake}.records"
    export(name, "--topic", "orders")
    export(name)
    given = ("--catalog", "lake", "--table", name)
    assert run("optimize", *given)[0].startswith("wrote 2 files")
    table = IcebergTable(name, catalog="lake")
    assert len(named(table)) == 1
    before = stored(gateway, table)
    assert len(before) == 3
    vacuum = ("vacuum", *given, "--older-than", "1ms")
    if properties["type"] == "rest":
        done = CliRunner().invoke(kafkalog, vacuum)
        assert done.exit_code == 3
        assert "is in a Nessie catalog" in done.stderr
        assert stored(gateway, table) == before
    else:
        run(*vacuum)
        assert stored(gateway, table) == named(table)
    assert sorted_rows(scanned(table)) == view_rows([SHOP])
    assert export(name) == ["nothing is new"]


def test_a_server_that_does_not_answer_is_an_error_in_one_line(
    lake: str, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "glue.endpoint" if properties["type"] == "glue" else "uri"
    for variable, value in variables({place: "http://127.0.0.1:1"}).items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())
    given = ("--format", "iceberg", "--catalog", "lake", "--table", f"{lake}.records")
    done = CliRunner().invoke(kafkalog, ["export", str(SHOP), *given])
    assert done.exit_code == 3
    assert f"error: table {lake}.records: the Iceberg catalog failed: " in done.stderr
    assert len(done.stderr.splitlines()) == 2
