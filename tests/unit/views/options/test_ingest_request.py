"""Which offsets the options of an ingest name."""

import shlex
from pathlib import Path

import click
import pytest

from kafkalog.errors import ConflictingOptionsError, OptionError
from kafkalog.storage.reading.offset_ranges import Everything, SpecificOffsets
from kafkalog.views.options.ingest_request import IngestRequest, ingest_options
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.planning.state_sources import found_sources
from tests.support.logs.log_dirs import add_partition

NOW_MS = 1_795_000_000_000


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name in ("orders-0", "orders-1"):
        add_partition(tmp_path / "logs", name, 0)
    return tmp_path / "logs"


def ingested(logs: Path, arguments: str) -> tuple[ReadOptions, bool]:
    """The options of the source, and whether they name a start."""
    found: list[IngestRequest] = []
    command = click.command()(ingest_options(lambda request: found.append(request)))
    command.main(shlex.split(arguments), standalone_mode=False)
    (request,) = found
    output = str(logs.parent / "tables")
    return request.options([str(logs)], "FAILFAST", output, now_ms=NOW_MS), request.is_bounded


def limits(first: int, second: int) -> SpecificOffsets:
    return SpecificOffsets({("orders", 0): first, ("orders", 1): second})


def test_a_range_alone_is_of_every_partition(logs: Path) -> None:
    options, is_bounded = ingested(logs, "--offsets 5:9")
    assert (options.offsets.starting, options.offsets.ending) == (limits(5, 5), limits(9, 9))
    assert is_bounded


def test_a_range_without_a_start_goes_on_where_the_table_ends(logs: Path) -> None:
    options, is_bounded = ingested(logs, "--offsets orders-0=:9 --offsets orders-1=:")
    assert (options.offsets.starting, options.offsets.ending) == (Everything(), limits(9, -1))
    assert not is_bounded


def test_a_partition_that_is_named_without_bounds_has_to_be_the_only_one(logs: Path) -> None:
    options, _ = ingested(logs, "--offsets orders-0=:")
    told = pytest.raises(OptionError, match=r"--offsets: .*orders-0, orders-1")
    with told:
        found_sources(options)


def test_a_pattern_that_matches_no_topic_is_refused(logs: Path) -> None:
    options, _ = ingested(logs, "--topic-pattern ^order$")
    told = pytest.raises(OptionError, match=r"subscribePattern.*did you mean orders")
    with told:
        found_sources(options)


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
    arguments: str, error: type[Exception], logs: Path
) -> None:
    with pytest.raises(error):
        ingested(logs, arguments)
