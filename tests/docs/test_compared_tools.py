"""What the page that compares tools says of kafkalog is a command that runs."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.schemas import table_fields, table_names
from tests.docs.shown_commands import Reader, Shown
from tests.support.repository import ROOT

PAGE = (ROOT / "docs" / "compare.md").read_text()
COMMANDS = re.findall(r"`(kafkalog [^`]+)`", PAGE)
SECURITY = (ROOT / "docs" / "operations.md").read_text().split("\n## Security\n")[1]
PAYLOADS = {"key", "value", "headers"}


def test_every_part_has_commands() -> None:
    parts = PAGE.split("\n## ")[1:]
    assert [part.partition("\n")[0] for part in parts if "`kafkalog " not in part] == []


@pytest.mark.deep
@pytest.mark.spark
@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_a_command_of_the_comparison_runs(
    command: str, spark: SparkSession, tmp_path: Path
) -> None:
    reader = Reader(spark, tmp_path)
    assert reader.does(Shown(1, False, command, None)) != ""
    assert reader.does(Shown(1, False, "echo $?", None)) in ("0\n", "1\n")


def test_every_table_that_shows_payloads_is_named_on_the_page_about_security() -> None:
    shows = {
        name: PAYLOADS & {field["name"] for field in table_fields(name)} for name in table_names()
    }
    # The values of these tables are settings; secrets among them are hidden.
    others = {"cluster_configs", "cluster_znodes"}
    showing = {name for name, columns in shows.items() if columns} - others
    assert [name for name in sorted(showing) if f"`{name}`" not in SECURITY] == []
