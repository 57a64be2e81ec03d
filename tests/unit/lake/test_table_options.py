"""The options that say how tables are written."""

import click
import pytest
from click.testing import CliRunner

from kafkalog.errors import OptionError
from kafkalog.lake.formats.targets import DELTA, ICEBERG, PARQUET, TablePlace, requested_place
from kafkalog.lake.layout import Compression, PartitionBy, TableLayout
from kafkalog.lake.table_options import TableRequest, table_options


def given(*arguments: str) -> TableRequest:
    found: list[TableRequest] = []

    @click.command()
    @table_options
    def command(tables: TableRequest) -> None:
        found.append(tables)

    result = CliRunner().invoke(command, arguments)
    if not found:
        raise click.UsageError(result.output)
    return found[0]


def test_without_options_files_are_as_the_layout_has_them() -> None:
    assert given() == TableRequest()
    assert given().layout() == TableLayout()


def test_options_make_a_layout() -> None:
    arguments = "--partition-by topic --partition-by day --compression gzip --compression-level 9"
    request = given(*arguments.split(), "--target-file-size", "1 GiB")
    expected = TableLayout((PartitionBy.TOPIC, PartitionBy.DAY), 1 << 30, Compression.GZIP, 9)
    assert request.layout() == expected


@pytest.mark.parametrize("size", ["0", "-1", "256MB", "big", ""])
def test_what_is_not_a_size_is_refused(size: str) -> None:
    with pytest.raises(click.UsageError, match="is not a size, such as 256MiB"):
        given("--target-file-size", size)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (TableRequest(table="a.b.c", table_per_topic=True), "--table cannot be used with"),
        (TableRequest(partition_by=("day", "hour")), "--partition-by day cannot be used with"),
        (TableRequest(compression="snappy", compression_level=3), "snappy has no levels"),
        (TableRequest(compression="none", compression_level=3), "none has no levels"),
        (TableRequest(compression_level=99), "a level of zstd, from"),
        (
            TableRequest(compression="lzo"),
            "--compression: 'lzo' is not valid, expected one of none, snappy",
        ),
        (
            TableRequest(partition_by=("week",)),
            "--partition-by: 'week' is not valid, expected one of topic",
        ),
        (
            TableRequest(target_file_size=0),
            "--target-file-size: 0 is not valid, expected a number of byt",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(request_: TableRequest, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        request_.layout()


def test_tables_are_in_a_directory_or_in_a_catalog() -> None:
    named = given("--catalog", "lake", "--table", "raw.records")
    assert requested_place(ICEBERG, None, named) == TablePlace(ICEBERG, None, "lake", "raw.records")
    for table_format in (DELTA, ICEBERG, PARQUET):
        assert requested_place(table_format, "/lake", given()) == TablePlace(table_format, "/lake")
    assert requested_place(DELTA, "/lake", given("--table", "a.b.c")).table == "a.b.c"


@pytest.mark.parametrize(
    ("request_", "table_format", "output_dir", "message"),
    [
        (TableRequest(), DELTA, None, "--output-dir: missing, expected a directory, or --catalog"),
        (TableRequest(), ICEBERG, None, "--output-dir: missing"),
        (TableRequest("lake"), ICEBERG, "/lake", "--output-dir: leave it out with"),
        (
            TableRequest("lake"),
            DELTA,
            None,
            "--catalog: only with --format iceberg: .*Spark's catal",
        ),
        (TableRequest("lake"), PARQUET, None, "--catalog: only with --format iceberg: Parquet has"),
        (TableRequest(table="a"), PARQUET, "/lake", "--table: only with --format"),
        (TableRequest(compression_level=99), PARQUET, "/lake", "a level of zstd, from"),
    ],
)
def test_a_place_that_does_not_fit_is_refused(
    request_: TableRequest, table_format: str, output_dir: str | None, message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        requested_place(table_format, output_dir, request_)
