"""The state of every fixture topic against a replay of what a real consumer received.

Rules: F270, F271, F272, F273; T5 to T9, T14, T18, T42.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.spark.job import ExitCode
from tests.golden.fixture_sets import CONSUMERS, topics
from tests.jobs.state_runs import consumed_state, run_state, state_in

pytestmark = pytest.mark.spark

# tiered43 is left out: the consumer also received what is not in the log directory.
SETS = sorted(CONSUMERS.keys() - {"tiered43"})


@pytest.mark.parametrize("name", SETS)
def test_state_is_that_of_replaying_what_a_consumer_received(
    name: str, spark: SparkSession, unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    logs, golden = unpacked(f"{name}.logs"), unpacked(f"{name}.golden")
    place = "log-dirs/*" if name == "kafka39zk" else "log-dirs"
    arguments = "--format parquet --isolation-level read_uncommitted --subscribe * --stop-at logEnd"
    assert run_state(*logs.glob(place), output=tmp_path, arguments=arguments) == ExitCode.DONE
    found = state_in(spark, tmp_path)
    expected = consumed_state(golden, topics(golden, CONSUMERS[name]), CONSUMERS[name])
    # No consumer can subscribe to the controllers' own log.
    assert {key: row for key, row in found.items() if key[0] != "__cluster_metadata"} == expected
    assert len(expected) > 100
