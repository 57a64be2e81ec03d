import sys
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks import codecs, decode
from benchmarks.contest import contest, readers
from benchmarks.contest.same_work import DifferentWorkError, check_same_rows
from benchmarks.inputs.prepared import prepare
from benchmarks.inputs.segments import Segment, frame, read_segment, write_repeated
from benchmarks.inputs.wanted import CODECS, GENERATED, Input, Wanted
from benchmarks.measuring.rounds import Contender, measure, ratio

# Whatever the peers' own modules warn of when they are imported is not for these tests to judge.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

_PEERS = ("aiokafka", "kafka")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[Input]:
    wanted = Wanted(CODECS, (100,), 200_000, tmp_path_factory.mktemp("inputs"))
    return prepare(wanted, GENERATED, lambda text: None)


def _without_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in _PEERS]:
        monkeypatch.delitem(sys.modules, name)
    for name in _PEERS:
        monkeypatch.setitem(sys.modules, name, None)


def _table(printed: str, first_column: str) -> list[list[str]]:
    """The cells of the table whose header begins with the given two names."""
    lines = [line for line in printed.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    start = next(i for i, row in enumerate(cells) if row[1] == first_column)
    return [row for row in cells[start + 2 :] if len(row) == len(cells[start])]


def test_all_contenders_do_the_same_work_whatever_the_codec(inputs: list[Input]) -> None:
    for item in inputs:
        held = contest.hold(item, rounds=1)  # raises where anyone gives other rows
        names = set(held.contenders) | set(held.not_installed)
        assert {contest.FLOOR, contest.FULL, contest.AIOKAFKA, contest.KAFKA_PYTHON} <= names
        assert all(len(contender.seconds) == 1 for contender in held.contenders.values())


def test_missing_peers_are_reported_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _without_peers(monkeypatch)
    arguments = ["--generated", "--size", "0.2", "--rounds", "2", "--inputs", str(tmp_path)]
    arguments += ["--codecs", "none,zstd", "--record-sizes", "100", "--memory-size", "1"]
    assert decode.main(arguments) == 0
    rows = _table(capsys.readouterr().out, "what")
    said = {(row[0], row[1]): row for row in rows}
    for codec in ("none", "zstd"):
        label = f"{codec} 100 B"
        assert said[label, contest.AIOKAFKA][2] == "not installed: aiokafka"
        assert said[label, contest.KAFKA_PYTHON][2] == "not installed: kafka-python"
        assert said[label, contest.FULL][-1] in ("yes", "NO")
        assert said[label, "peak memory, a file of 1 MiB"][-1] in ("yes", "NO", "")


def test_the_codecs_benchmark_compares_what_is_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--generated", "--size", "0.2", "--part", "0.2", "--rounds", "1"]
    assert codecs.main([*arguments, "--record-size", "100", "--inputs", str(tmp_path)]) == 0
    rows = _table(capsys.readouterr().out, "library")
    chosen = [row for row in rows if "kafkalog's choice" in row[1]]
    assert len(chosen) == len(CODECS)
    assert all(row[2] for row in rows)


def test_other_rows_are_noticed() -> None:
    expected = pa.record_batch({"offset": [1, 2], "value": [b"a", None]})
    check_same_rows("same", [expected], [expected.slice(0, 1), expected.slice(1)])
    with pytest.raises(DifferentWorkError, match="1 rows, 2 expected"):
        check_same_rows("fewer", [expected], [expected.slice(1)])
    other = pa.record_batch({"offset": [1, 2], "value": [b"a", b""]})
    with pytest.raises(DifferentWorkError, match="column value"):
        check_same_rows("other", [expected], [other])


def test_a_contender_that_gives_another_count_ends_the_benchmark() -> None:
    with pytest.raises(AssertionError, match="2 instead of 3"):
        measure([Contender("short", lambda: 2, 3)], rounds=1)


def test_ratios_are_taken_round_by_round() -> None:
    slow, fast = Contender("slow", lambda: 1, 1), Contender("fast", lambda: 1, 1)
    slow.seconds, fast.seconds = [2.0, 40.0, 3.0], [1.0, 10.0, 1.0]
    assert ratio(slow, fast).median == 3


def test_a_repeated_segment_is_sound(inputs: list[Input], tmp_path: Path) -> None:
    segment = read_segment(inputs[0].path)
    path = tmp_path / "repeated.log"
    size = 2 * len(segment.data) + segment.batches[0].end
    with path.open("wb") as file:
        write_repeated(segment, size, file)
    repeated = read_segment(path)
    assert len(repeated.data) == size
    rows = pa.Table.from_batches(readers.records(repeated))
    assert rows.column("offset").to_pylist() == list(range(repeated.records))


def test_a_part_of_a_segment_is_whole_batches(inputs: list[Input]) -> None:
    segment = read_segment(inputs[0].path)
    part: Segment = segment.leading(0.5)
    assert 0 < len(part.batches) < len(segment.batches)
    assert frame(part.data.data) == list(part.batches)
