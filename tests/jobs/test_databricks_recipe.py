"""The lines of docs/recipes.md for Databricks run in a notebook's session; paths and the names of
tables are those of this machine."""

import re
import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.repository import ROOT, SHOP

pytestmark = [pytest.mark.spark, pytest.mark.deep]


def test_the_recipe_runs(spark: SparkSession, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "recipes.md").read_text()
    section = text.partition("## Databricks\n")[2].partition("\n## ")[0]
    # Each of its tables is of a run of this test.
    batch, stream = (f"recipe_{uuid.uuid4().hex}" for _ in range(2))
    first, second, third = re.findall(r"```\n(.*?)```", section, re.DOTALL)
    names: dict[str, object] = {"spark": spark}
    try:
        for code, table in ((first, batch), (second, stream), (third, "")):
            code = code.replace("/Volumes/main/raw/kafka-logs", str(SHOP))
            code = code.replace("/Volumes/main/raw", str(tmp_path))
            code = code.replace("main.kafka.records", f"default.{table}")
            exec(code.replace(".toTable(", ".format('parquet').toTable("), names)
        for query in spark.streams.active:
            query.awaitTermination()
        counts = {spark.table(table).count() for table in (batch, stream)}
        assert counts == {spark.read.format("kafkalog").load(str(SHOP)).count()}
        assert spark.read.parquet(str(tmp_path / "checked" / "checksum_report")).count() > 0
    finally:
        for table in (batch, stream):
            spark.sql(f"DROP TABLE IF EXISTS default.{table}")
