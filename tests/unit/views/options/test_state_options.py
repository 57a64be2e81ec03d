"""Which offsets the options of reconstruct-state name, without a session."""

import shlex
from pathlib import Path

import click
import pytest

from kafkalog.errors import ConflictingOptionsError, OptionError
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.storage.reading.offset_ranges import SpecificOffsets
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.options.state_options import StateRequest, state_run_options
from tests.support.logs.log_dirs import add_partition


@pytest.fixture
def job(tmp_path: Path) -> JobSettings:
    for name in ("orders-0", "orders-1"):
        add_partition(tmp_path / "logs", name, 0)
    return JobSettings((str(tmp_path / "logs"),), str(tmp_path / "tables"), "FAILFAST")


def state(job: JobSettings, arguments: str) -> ReadOptions:
    found: list[StateRequest] = []
    command = click.command()(state_run_options(lambda request: found.append(request)))
    command.main(shlex.split(arguments), standalone_mode=False)
    return found[0].options(job.paths, job.mode, now_ms=1_795_000_000_000)


def limits(first: int, second: int) -> SpecificOffsets:
    return SpecificOffsets({("orders", 0): first, ("orders", 1): second})


def test_the_largest_offset_of_a_log_can_be_named(job: JobSettings) -> None:
    largest = 2**63 - 1
    given = f"--as-of-offset orders-0={largest} --as-of-offset orders-1=0"
    assert state(job, given).offsets.ending == limits(largest, 0)


def test_state_is_as_of_an_offset_of_each_partition_or_of_the_only_one(job: JobSettings) -> None:
    options = state(job, "--as-of-offset orders-0=5 --as-of-offset orders-1=-1")
    assert options.offsets.ending == limits(5, -1)
    with pytest.raises(OptionError, match="TOPIC-PARTITION=OFFSET for each of orders-0, orders-1"):
        state(job, "--as-of-offset 5")
    with pytest.raises(ConflictingOptionsError):
        state(job, "--as-of-offset 5 --as-of 1")
