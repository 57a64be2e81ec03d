"""What the tests of jobs share: running the checksum job, and reading its tables."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from jobs.validate_checksums import main
from tests.support.repository import EXAMPLES, ROOT, delta_jars

needs_delta = pytest.mark.skipif(
    not delta_jars(), reason="Delta's jars are not there: `make setup` fetches them"
)

DAMAGED = EXAMPLES / "damaged"
# By hand, from the descriptions in recovery.json: a page of zeros over the batch at 7979 and the
# rest of that batch, and one flipped bit in the batch at 23728.
DAMAGED_BYTES = 4096 + 3879 + 1558
DAMAGED_FAULTS = [
    ("00000000000000000000.log", 23728, 1558, "checksum", "error"),
    ("00000000000000002663.log", 7979, 4096, "zeros", "error"),
    ("00000000000000002663.log", 12075, 3879, "garbage", "error"),
]


def run(*log_dirs: Path, output: Path, arguments: str = "--format parquet") -> int:
    """The job in this process, in the tests' session."""
    return main([*map(str, log_dirs), "--output-dir", str(output), *arguments.split()])


def table(spark: SparkSession, output: Path, name: str, table_format: str = "parquet") -> DataFrame:
    return spark.read.format(table_format).load(str(output / name))


def written_schema(name: str) -> StructType:
    path = ROOT / "schemas" / "tables" / f"{name}.json"
    return StructType.fromJson(json.loads(path.read_text()))


def faults_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    """File's name, position, length, kind, severity of every fault."""
    rows = frame.orderBy("file", "position").collect()
    return [(Path(row.file).name, row.position, row.length, row.kind, row.severity) for row in rows]
