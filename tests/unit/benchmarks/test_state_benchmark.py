"""The inputs of the state benchmark: a log that is sound, and Parquet with the same records."""

from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.contest.readers import records_of_file
from benchmarks.inputs.state_inputs import write_inputs


def test_log_and_parquet_hold_the_same_records(tmp_path: Path) -> None:
    logs, parquet = write_inputs(tmp_path, records=1000, keys=50)
    (segment,) = (logs / "orders-0").glob("*.log")
    found = [row for batch in records_of_file(segment) for row in batch.to_pylist()]
    columns = ("key", "value", "offset")
    (rows,) = (pq.read_table(path, columns=list(columns)).to_pylist() for path in parquet.iterdir())
    assert [{name: row[name] for name in columns} for row in found] == rows
    assert [row["offset"] for row in rows] == list(range(1000))
    assert 40 < len({row["key"] for row in rows}) <= 50
