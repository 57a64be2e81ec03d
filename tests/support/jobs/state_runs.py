"""What the tests of the state job share: running it, its tables, and state by plain replay."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jobs.reconstruct_state import main
from tests.support.golden.fixture_sets import consumed

# Topic, partition and key to offset and value.
State = dict[tuple[str, int, bytes], tuple[int, bytes | None]]


def run_state(*log_dirs: Path, output: Path, arguments: str = "--format parquet") -> int:
    """The job in this process, in the tests' session."""
    given = ["--output-dir", str(output), *arguments.split()]
    given += [] if "--show" in given else ["--show", "0"]
    return main([*map(str, log_dirs), *given])


def state_in(spark: SparkSession, output: Path, table_format: str = "parquet") -> State:
    """The table's rows, deletes among them."""
    frame = spark.read.format(table_format).load(str(output / "state"))
    rows = frame.select("topic", "partition", "key", "offset", "value").toArrow().to_pylist()
    state = {
        (row["topic"], row["partition"], row["key"]): (row["offset"], row["value"]) for row in rows
    }
    assert len(state) == len(rows), "a key is there twice"
    return state


def replayed(topic: str, rows: Iterable[Mapping[str, Any]], *, deletes: bool = False) -> State:
    """State by the definition: the records in the order of their offsets, one after the other."""
    state: State = {}
    for row in sorted(rows, key=lambda row: (row["partition"], row["offset"])):
        if row["key"] is None:
            continue
        place = topic, row["partition"], row["key"]
        if row["value"] is None and not deletes:
            state.pop(place, None)
        else:
            state[place] = row["offset"], row["value"]
    return state


def consumed_state(
    golden: Path, topics: Iterable[str], consumer: str, *, deletes: bool = False
) -> State:
    """Return the state that a real consumer's records lead to."""
    state: State = {}
    for topic in topics:
        state |= replayed(topic, consumed(golden, topic, consumer), deletes=deletes)
    return state
