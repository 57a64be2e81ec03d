"""Job ingest-topics over the topics of a file, each with its own options, in one session. Rules:
F1090 to F1092, F1094."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kafkalog.spark.jobs.job import ExitCode
from kafkalog.testing import LogDirectory
from tests.support.jobs.ingest_runs import run_ingest

FILE = """
defaults: {format: parquet}
topics:
  plain: {}
  none: {compression: lz4}
  typed:
    key_format: string
    value_format: json
    value_schema: "id BIGINT, total DOUBLE"
    drop_decoded_bytes: true
  registered:
    value_format: confluent-json
    schema_registry: DIR
"""


@pytest.mark.spark
def test_each_topic_is_a_table_by_its_own_options(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = LogDirectory(tmp_path / "logs")
    made.topic("plain").records([("a", "1")])
    made.topic("typed").records([("a", '{"id": 1, "total": 2.5}')])
    # Confluent's prefix: a zero, and the id of the schema in four bytes.
    made.topic("registered").records([("a", b'\0\0\0\0\x07{"id": 3}')])
    made.write()
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "7.json").write_text('{"type": "object", "properties": {"id": {"type": "integer"}}}')
    file = tmp_path / "topics.yaml"
    file.write_text(FILE.replace("DIR", str(schemas)))
    done = run_ingest(
        tmp_path / "logs", output=tmp_path / "out", arguments=f"--topics-file {file} --show 0"
    )
    # The topic that is not there is a wrong argument, and the others are written.
    assert done == ExitCode.WRONG_ARGUMENTS
    told = capsys.readouterr()
    assert "--topic: 'none' is not valid" in told.err
    assert told.out.count("read 1 offset of 1 partition") == 3
    tables = {path.name: pq.read_table(path).to_pylist() for path in _tables(tmp_path / "out")}
    (plain,), (typed,), (registered,) = tables["plain"], tables["typed"], tables["registered"]
    assert (plain["value"], "value_decoded" in plain) == (b"1", False)
    assert (typed["value"], typed["value_decoded"]) == (None, {"id": 1, "total": 2.5})
    assert typed["key_decoded"] == "a"
    assert (registered["value_decoded"], registered["value_schema_id"]) == ({"id": 3}, 7)


def _tables(output: Path) -> list[Path]:
    return [path for path in output.iterdir() if path.name != "ingest_manifest"]
