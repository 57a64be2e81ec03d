"""Every topic of every fixture in tables of Parquet files and of Iceberg, read back by Arrow and by
pyiceberg, against what a consumer received. Delta's are in tests/jobs/tables.

Rules: F650, F651 and F660.
"""

from pathlib import Path
from typing import Any

import pytest

import kafkalog
from kafkalog.lake.iceberg.iceberg_table import IcebergTable
from kafkalog.lake.layout import PartitionBy, TableLayout
from kafkalog.lake.parquet.parquet_table import ParquetTable
from kafkalog.testing import LogDirectory, ProducerRecord
from tests.support.golden.exported_topics import check_exported_topics
from tests.support.golden.fixture_sets import CONSUMERS
from tests.support.lake.iceberg_tables import scanned
from tests.support.lake.parquet_tables import listed
from tests.support.repository import Unpack


@pytest.mark.parametrize("name", CONSUMERS)
def test_a_directory_of_parquet_has_the_records_that_a_consumer_received(
    name: str, unpacked: Unpack, tmp_path: Path
) -> None:
    path = tmp_path / "ingested_records"
    check_exported_topics(name, unpacked, ParquetTable(str(path)), lambda: listed(path))


@pytest.mark.parametrize("name", CONSUMERS)
def test_an_iceberg_table_has_the_records_that_a_consumer_received(
    name: str, unpacked: Unpack, tmp_path: Path
) -> None:
    layout = TableLayout((PartitionBy.TOPIC, PartitionBy.HOUR))
    table = IcebergTable(output_dir=str(tmp_path), layout=layout)
    check_exported_topics(name, unpacked, table, lambda: scanned(table))
    table.catalog.close()


def test_what_an_export_from_python_does_not_decode_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = LogDirectory(tmp_path / "logs")
    values = ('{"a": 1}', "no JSON", "{")
    directory.topic("orders").records([ProducerRecord(None, value) for value in values])
    given: dict[str, Any] = {"format": "parquet", "value_format": "json", "value_schema": "a INT"}
    kafkalog.export(None, directory.write(), str(tmp_path / "lake"), **given)
    (line,) = [each for each in caplog.messages if "decoded" in each]
    assert line == "2 values could not be decoded: column value_error has the reason"
