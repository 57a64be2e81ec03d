"""Iceberg tables in Hive's metastore, their files on this machine's disk. Rules: F660 to F665."""

import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyiceberg import catalog
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from tests.remote.catalog_servers import HIVE_CLIENT, hive, variables
from tests.support.disks.failing_disk import needs_compiler
from tests.support.fetched_packages import fetched_packages
from tests.support.lake.exports import exported, sorted_rows, view_rows
from tests.support.lake.iceberg_tables import committed_at_once, scanned
from tests.support.repository import SHOP

pytestmark = [
    pytest.mark.remote,
    pytest.mark.deep,
    needs_compiler,
    pytest.mark.timeout(900),  # whichever test is first waits for Maven and the server
]
_REFUSED = "another run has written meanwhile, this one has written nothing: run it again"


@pytest.fixture(scope="module")
def properties(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with hive(tmp_path_factory.mktemp("hive")) as found:
        yield found


@pytest.fixture
def lake(properties: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """A database of the test's own in catalog `lake` of the configuration."""
    for name, value in variables(properties).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "path", [*sys.path, str(fetched_packages(*HIVE_CLIENT))])
    # pyiceberg reads its configuration when it is imported.
    monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())
    return f"raw_{uuid.uuid4().hex[:8]}"


def export(table: str, *arguments: str) -> Result:
    given = ["--format", "iceberg", "--catalog", "lake", "--table", table, *arguments]
    return CliRunner().invoke(kafkalog, ["export", str(SHOP), *given])


def said(done: Result) -> list[str]:
    assert done.exit_code == ExitCode.DONE, done.output
    return done.stdout.splitlines()


def test_the_command_adds_what_is_new_and_joins_files(lake: str) -> None:
    # Hive keeps names in small letters.
    table = f"{lake}.Records"
    assert said(export(table, "--topic", "orders", "--partition-by", "topic"))[-2:] == [
        "read 3,186 offsets of 3 partitions",
        f"tables: {table}",
    ]
    assert said(export(table))[-2] == "read 300 offsets of 1 partition"
    assert said(export(table)) == ["nothing is new"]
    given = ["--catalog", "lake", "--table", table]
    for command in (["optimize"], ["vacuum", "--older-than", "1ms"]):
        said(CliRunner().invoke(kafkalog, [*command, *given]))
    assert said(export(table)) == ["nothing is new"]
    assert sorted_rows(scanned(IcebergTable(table, catalog="lake"))) == view_rows([SHOP])


def test_of_commits_at_once_one_is_done(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F661."""
    exported(IcebergTable(f"{lake}.records", catalog="lake"), [SHOP], subscribe="orders")
    tables = [IcebergTable(f"{lake}.records", catalog="lake") for _ in range(3)]
    outcomes = committed_at_once(tables, [SHOP], monkeypatch)
    assert sorted(outcomes) == [_REFUSED, _REFUSED, "done"]
    assert sorted_rows(scanned(tables[0])) == view_rows([SHOP])


@pytest.mark.parametrize("parameters", [{}, {"table_type": "HUDI"}])
def test_a_table_of_another_kind_is_not_taken_for_ours(
    lake: str, parameters: dict[str, str]
) -> None:
    client = load_catalog("lake")
    client.create_namespace(lake)
    _create_plain_table(client, lake, parameters)
    done = export(f"{lake}.plain")
    assert done.exit_code == ExitCode.UNREADABLE_INPUT
    found = f"error: table {lake}.plain: the catalog has another table of that name, which is not"
    assert found in done.stderr


def _create_plain_table(client: Any, database: str, parameters: dict[str, str]) -> None:
    from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table

    place = client.load_namespace_properties(database)["location"]
    formats = [f"org.apache.hadoop.mapred.{name}" for name in ("TextInputFormat", "OutputFormat")]
    stored = StorageDescriptor(
        [FieldSchema("a", "int", None)], f"{place}/plain", *formats, serdeInfo=SerDeInfo()
    )
    table = Table("plain", database, sd=stored, tableType="EXTERNAL_TABLE", parameters=parameters)
    with client._client as open_client:
        open_client.create_table(table)


def test_names_that_hive_does_not_have_are_errors_in_one_line(lake: str) -> None:
    expected = {
        f"{lake}.inner.records": "namespace.name: this catalog has no namespaces in others",
        f"{lake}.records-2": "records-2 is not a valid object name",
    }
    for table, words in expected.items():
        done = export(table)
        assert done.exit_code in (ExitCode.WRONG_ARGUMENTS, ExitCode.UNREADABLE_INPUT)
        assert words in done.stderr
        assert len([line for line in done.stderr.splitlines() if "error" in line]) == 1


def test_a_server_that_does_not_answer_is_an_error_in_one_line(
    lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "thrift://127.0.0.1:1")
    monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())
    done = export(f"{lake}.records")
    assert done.exit_code == ExitCode.UNREADABLE_INPUT
    assert f"error: table {lake}.records: the Iceberg catalog failed: Could not" in done.stderr
