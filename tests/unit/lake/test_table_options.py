"""The options that say how tables are written."""

import click
import pytest
from click.testing import CliRunner

from kafkalog.errors import OptionError
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
        (TableRequest("a.b.c", table_per_topic=True), "--table cannot be used with"),
        (TableRequest(partition_by=("day", "hour")), "--partition-by day cannot be used with"),
        (TableRequest(compression="snappy", compression_level=3), "snappy has none"),
        (TableRequest(compression="none", compression_level=3), "none has none"),
        (TableRequest(compression_level=99), "a level of zstd, from"),
    ],
)
def test_options_that_do_not_fit_are_refused(request_: TableRequest, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        request_.layout()
