"""What commands do for a segment does not depend on how many there are beside it."""

import cProfile
import pstats
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups
from tests.support.logs.samples import batch

FEW, MANY = 50, 200
# What is done once in so many calls, and not at each segment.
TOLERANCE = 1.2


@pytest.fixture(scope="module", params=["empty", "one batch"])
def log_dirs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Log directories, named after how many segments their partition has."""
    place = tmp_path_factory.mktemp("logs")
    for count in (0, FEW, MANY):
        directory = place / str(count) / "orders-0"
        directory.mkdir(parents=True)
        for number in range(count + 1):
            stem = directory / f"{number:020d}"
            stem.with_suffix(".log").write_bytes(
                b"" if request.param == "empty" else batch(number, 1)
            )
            for kind in (".index", ".timeindex", ".snapshot", ".kafka-unknown"):
                stem.with_suffix(kind).touch()
    return place


def calls(function: Callable[[], object]) -> int:
    profile = cProfile.Profile()
    profile.runcall(function)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def assert_linear(work: Callable[[str], object], log_dirs: Path) -> None:
    # What is imported and remembered once.
    work(str(log_dirs / "0"))
    none, few, many = (calls(partial(work, str(log_dirs / str(count)))) for count in (0, FEW, MANY))
    assert (many - none) / MANY <= TOLERANCE * (few - none) / FEW


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls"],
        ["ls", "--by", "segment", "--format", "json"],
        ["ls", "--quick"],
        ["check"],
        ["dump"],
        ["dump", "--deep", "--offsets", "3:7"],
        ["find", "--topic", "orders", "--key", "k"],
        ["get-offsets"],
        ["recover"],
    ],
    ids=" ".join,
)
def test_a_command_is_linear_in_segments(arguments: list[str], log_dirs: Path) -> None:
    def run(path: str) -> None:
        given = [*arguments, path]
        if arguments[0] in ("ls", "check", "dump", "find"):
            given += ["--processes", "1"]
        result = CliRunner().invoke(kafkalog, given, catch_exceptions=False)
        assert result.exit_code in (ExitCode.DONE, ExitCode.FINDINGS), result.output

    assert_linear(run, log_dirs)


@pytest.mark.parametrize("command", ["ls", "check", "dump"])
def test_a_command_is_linear_in_files_that_are_given(command: str, log_dirs: Path) -> None:
    def run(path: str) -> None:
        paths = [str(found) for found in sorted(Path(path).glob("*/*.log"))]
        given = [command, "--processes", "1", *paths]
        result = CliRunner().invoke(kafkalog, given, catch_exceptions=False)
        assert result.exit_code in (ExitCode.DONE, ExitCode.FINDINGS), result.output

    assert_linear(run, log_dirs)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"isolationLevel": "read_committed"},
        {"fromTimestamp": "5"},
        {"view": "byte_ranges"},
        {"view": "segments"},
        {"stopAt": "highWatermark"},
    ],
    ids=str,
)
def test_planning_is_linear_in_segments(options: dict[str, str], log_dirs: Path) -> None:
    assert_linear(lambda path: planned_groups(read_options({"path": path, **options})), log_dirs)
