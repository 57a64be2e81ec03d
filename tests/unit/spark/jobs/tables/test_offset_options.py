"""Which offsets the options of ingest-topics and reconstruct-state name, without a session."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from kafkalog.errors import ConflictingOptionsError, OptionError
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.jobs.tables.ingest_request import OPTIONS, IngestRequest, ingest_options
from kafkalog.spark.jobs.tables.state_request import (
    StateRequest,
    named_as_options,
    state_options,
)
from kafkalog.spark.jobs.tables.state_sources import found_sources
from kafkalog.storage.reading.offset_ranges import Everything, SpecificOffsets
from kafkalog.views.options.options import ReadOptions
from tests.support.logs.log_dirs import add_partition


@pytest.fixture
def job(tmp_path: Path) -> JobSettings:
    for name in ("orders-0", "orders-1"):
        add_partition(tmp_path / "logs", name, 0)
    return JobSettings((str(tmp_path / "logs"),), str(tmp_path / "tables"), "FAILFAST")


def ingested(job: JobSettings, arguments: str) -> tuple[ReadOptions, bool]:
    """The options of the source, and whether they name a start."""
    found: list[IngestRequest] = []
    command = click.command()(ingest_options(lambda request: found.append(request)))
    command.main(shlex.split(arguments), standalone_mode=False)
    return found[0].options(job, job.paths), found[0].is_bounded


def state(job: JobSettings, arguments: str) -> ReadOptions:
    found: list[StateRequest] = []
    command = click.command()(state_options(lambda request: found.append(request)))
    command.main(shlex.split(arguments), standalone_mode=False)
    return found[0].options(job, job.paths)


def limits(first: int, second: int) -> SpecificOffsets:
    return SpecificOffsets({("orders", 0): first, ("orders", 1): second})


def test_a_range_alone_is_of_every_partition(job: JobSettings) -> None:
    options, is_bounded = ingested(job, "--offsets 5:9")
    assert (options.offsets.starting, options.offsets.ending) == (limits(5, 5), limits(9, 9))
    assert is_bounded


def test_a_range_without_a_start_goes_on_where_the_table_ends(job: JobSettings) -> None:
    options, is_bounded = ingested(job, "--offsets orders-0=:9 --offsets orders-1=:")
    assert (options.offsets.starting, options.offsets.ending) == (Everything(), limits(9, -1))
    assert not is_bounded


def test_a_partition_that_is_named_without_bounds_has_to_be_the_only_one(job: JobSettings) -> None:
    options, _ = ingested(job, "--offsets orders-0=:")
    told = pytest.raises(OptionError, match=r"--offsets.*orders-0, orders-1")
    with told, named_as_options(OPTIONS):
        found_sources(options)


def test_a_pattern_that_matches_no_topic_is_refused(job: JobSettings) -> None:
    options, _ = ingested(job, "--topic-pattern ^order$")
    told = pytest.raises(OptionError, match=r"--topic-pattern.*did you mean orders")
    with told, named_as_options(OPTIONS):
        found_sources(options)


def test_the_largest_offset_of_a_log_can_be_named(job: JobSettings) -> None:
    largest = 2**63 - 1
    given = f"--as-of-offset orders-0={largest} --as-of-offset orders-1=0"
    assert state(job, given).offsets.ending == limits(largest, 0)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("--offsets 5:9 --from-time 1", ConflictingOptionsError),
        ("--offsets :9 --until-time 1", ConflictingOptionsError),
        ("--offsets 5: --full-refresh", ConflictingOptionsError),
        ("--from-time 2026-11-22 --until-time 2026-11-21", OptionError),
        ("--offsets orders-0=5:9 --offsets orders-1=:9", OptionError),
        ("--offsets orders-0=5:9 --offsets orders-0=6:9", OptionError),
        ("--offsets orders-0=5:9 --offsets 6:9", OptionError),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    arguments: str, error: type[Exception], job: JobSettings
) -> None:
    with pytest.raises(error):
        ingested(job, arguments)


def test_state_is_as_of_an_offset_of_each_partition_or_of_the_only_one(job: JobSettings) -> None:
    options = state(job, "--as-of-offset orders-0=5 --as-of-offset orders-1=-1")
    assert options.offsets.ending == limits(5, -1)
    with pytest.raises(OptionError, match="TOPIC-PARTITION=OFFSET for each of orders-0, orders-1"):
        state(job, "--as-of-offset 5")
    with pytest.raises(ConflictingOptionsError):
        state(job, "--as-of-offset 5 --as-of 1")
