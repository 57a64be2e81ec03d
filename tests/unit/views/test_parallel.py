"""A function over files on several processes: results in order, errors in their turn, no process
left behind."""

import io
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.errors import LogDirError
from kafkalog.exit_codes import stopped_by_exceptions
from kafkalog.views import parallel
from kafkalog.views.parallel import (
    all_results,
    in_order,
    light_in_order,
    processes_for,
    written_in_order,
)
from kafkalog.views.worker_pool import WorkerEndedError

# The threads of other tests, such as Spark's, hold nothing that these processes want.
pytestmark = pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests have opened some in this process."""
    monkeypatch.setattr(parallel, "has_connections", lambda: False)


def test_a_process_that_is_connected_with_a_store_does_it_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # F638: a fork would read the answers to this one's requests.
    monkeypatch.setattr(parallel, "has_connections", lambda: True)

    def own_id(number: int) -> Iterator[int]:
        yield os.getpid()

    assert set(in_order(own_id, range(9), processes=3)) == {os.getpid()}


def slow_squares(number: int) -> Iterator[tuple[int, int]]:
    """Two results of a number, the later the smaller it is."""
    time.sleep(0.002 * (5 - number % 5))
    yield number, number**2
    yield number, number**3


@pytest.mark.parametrize("processes", [1, 2, 3, 20])
def test_results_come_in_the_order_of_the_files(processes: int) -> None:
    done: list[int] = []
    found = list(in_order(slow_squares, range(12), processes=processes, on_done=done.append))
    assert found == [(n, power) for n in range(12) for power in (n**2, n**3)]
    assert done == list(range(12))


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [("_FORKS_COST_SECONDS", 0.0), ("_MOST_ALONE_SECONDS", 0.025), ("_MOST_ALONE_SECONDS", 60.0)],
)
def test_processes_take_what_is_left_of_light_work(
    monkeypatch: pytest.MonkeyPatch, limit: str, seconds: float
) -> None:
    # F1386: the items take time, and hardly any of a processor's.
    monkeypatch.setattr(parallel, limit, seconds)
    done: list[int] = []

    def with_process(number: int) -> Iterator[tuple[int, int]]:
        yield from ((os.getpid(), found) for _, found in slow_squares(number))

    found = list(light_in_order(with_process, range(12), processes=2, on_done=done.append))
    assert [square for _, square in found] == [p for n in range(12) for p in (n**2, n**3)]
    assert done == list(range(12))
    are_here = [process == os.getpid() for process, _ in found]
    # Whatever is done here comes first.
    assert are_here == sorted(are_here, reverse=True)
    assert all(are_here) == (seconds == 60)


def test_no_process_is_begun_for_no_file() -> None:
    assert list(in_order(slow_squares, [], processes=4)) == []


def failing(number: int) -> Iterator[int]:
    yield number
    if number == 2:
        raise LogDirError("broken")


@pytest.mark.parametrize("processes", [1, 3])
def test_an_error_comes_in_its_turn(processes: int) -> None:
    results = in_order(failing, range(6), processes=processes)
    assert [next(results), next(results), next(results)] == [0, 1, 2]
    with pytest.raises(LogDirError, match="broken"):
        next(results)
    assert multiprocessing.active_children() == []


def many(number: int) -> Iterator[bytes]:
    for _ in range(200):
        yield bytes(100_000)


def test_results_ahead_of_their_turn_are_bounded_and_all_come() -> None:
    assert sum(map(len, in_order(many, range(5), processes=2))) == 5 * 200 * 100_000


def test_stopping_early_leaves_no_process() -> None:
    results = in_order(many, range(8), processes=3)
    next(results)
    results.close()
    assert multiprocessing.active_children() == []


def killed(number: int) -> Iterator[int]:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    yield number


def test_a_process_that_is_killed_is_an_error() -> None:
    with pytest.raises(WorkerEndedError, match=r"exit code -9.*--processes 1"):
        list(in_order(killed, range(4), processes=2))
    assert multiprocessing.active_children() == []


def lines_of(number: int) -> Iterator[tuple[bytes, int]]:
    """Two texts of a number, the later the smaller it is."""
    for place in range(2):
        time.sleep(0.002 * (5 - number % 5))
        yield b"%d %d\n" % (number, place) * 1000, number


def written_lines(numbers: range) -> bytes:
    return b"".join(b"%d %d\n" % (number, place) * 1000 for number in numbers for place in (0, 1))


@pytest.mark.parametrize("processes", [1, 2, 3, 20])
@pytest.mark.parametrize("held_bytes", [32 * 1024 * 1024, 7000, 1])
def test_texts_are_written_in_the_order_of_the_files_however_little_is_held(
    processes: int, held_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_MOST_HELD_BYTES", held_bytes)
    done: list[int] = []
    with (tmp_path / "output").open("wb") as output:
        output.write(b"first\n")
        results = written_in_order(
            lines_of, range(12), output, processes=processes, on_done=done.append
        )
        assert list(results) == [number for number in range(12) for _ in range(2)]
    assert (tmp_path / "output").read_bytes() == b"first\n" + written_lines(range(12))
    assert done == list(range(12))


def test_an_output_without_a_file_descriptor_is_written_too() -> None:
    output = io.BytesIO()
    assert len(list(written_in_order(lines_of, range(4), output, processes=2))) == 8
    assert output.getvalue() == written_lines(range(4))


def failing_lines(number: int) -> Iterator[tuple[bytes, int]]:
    yield from lines_of(number)
    if number == 2:
        raise LogDirError("broken")


@pytest.mark.parametrize("processes", [1, 3])
def test_what_was_made_before_an_error_is_written_before_it(processes: int, tmp_path: Path) -> None:
    with (tmp_path / "output").open("wb") as output:
        results = written_in_order(failing_lines, range(6), output, processes=processes)
        assert [next(results) for _ in range(6)] == [0, 0, 1, 1, 2, 2]
        with pytest.raises(LogDirError, match="broken"):
            next(results)
    assert (tmp_path / "output").read_bytes() == written_lines(range(3))
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("processes", [1, 2])
def test_an_output_without_a_reader_is_an_error_that_ends_all(processes: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb", buffering=0) as output, pytest.raises(BrokenPipeError):
        list(written_in_order(lines_of, range(8), output, processes=processes))
    assert multiprocessing.active_children() == []


def test_a_process_that_is_killed_before_its_turn_is_an_error(tmp_path: Path) -> None:
    is_about_to_be_killed = multiprocessing.get_context("fork").Event()

    def killed_lines(number: int) -> Iterator[tuple[bytes, int]]:
        if number == 0:
            assert is_about_to_be_killed.wait(60)
        yield from lines_of(number)
        if number == 1:
            is_about_to_be_killed.set()
            os.kill(os.getpid(), signal.SIGKILL)

    with (
        (tmp_path / "output").open("wb") as output,
        pytest.raises(WorkerEndedError, match=r"exit code -9"),
    ):
        list(written_in_order(killed_lines, range(6), output, processes=2))
    assert (tmp_path / "output").read_bytes() == written_lines(range(1))
    assert multiprocessing.active_children() == []


def test_small_inputs_are_read_by_one_process_and_an_asked_number_counts() -> None:
    mib = 1024 * 1024
    assert [processes_for(size, None) for size in (0, mib, 16 * mib)] == [1, 1, 1]
    cores = len(os.sched_getaffinity(0))
    assert processes_for(1 << 50, None) == cores
    assert processes_for(17 * mib, None) == min(2, cores)
    assert processes_for(mib, 7) == 7


def squared(number: int) -> int:
    if number == 2:
        time.sleep(0.3)
        raise LogDirError("broken")
    return number**2


@pytest.mark.parametrize("processes", [1, 3])
def test_all_results_come_at_once_in_the_order_of_the_items(processes: int) -> None:
    found = all_results(
        lambda number: number**2,
        range(9),
        processes=processes,
        on_wait=lambda: None,
        on_failure=lambda _: None,
    )
    assert found == [number**2 for number in range(9)]


@pytest.mark.parametrize(("processes", "expected"), [(1, {0, 1}), (3, {0, 1, 9, 16})])
def test_what_was_done_before_an_error_is_handed_over_with_it(
    processes: int, expected: set[int]
) -> None:
    left: list[int] = []
    with pytest.raises(LogDirError, match="broken"):
        all_results(
            squared, range(5), processes=processes, on_wait=lambda: None, on_failure=left.extend
        )
    assert set(left) == expected
    assert multiprocessing.active_children() == []


def test_a_process_that_is_ended_cleans_up(tmp_path: Path) -> None:
    def slow(number: int) -> int:
        if number == 0:
            while not (tmp_path / "made").exists():
                time.sleep(0.01)
            raise LogDirError("broken")
        with stopped_by_exceptions():
            try:
                (tmp_path / "made").touch()
                time.sleep(60)
            finally:
                (tmp_path / "made").unlink()
        return number

    with pytest.raises(LogDirError, match="broken"):
        all_results(slow, [0, 1], processes=2, on_wait=lambda: None, on_failure=lambda _: None)
    assert not (tmp_path / "made").exists()


def test_whoever_waits_is_called_meanwhile() -> None:
    calls: list[None] = []
    all_results(
        lambda number: time.sleep(1),
        [0, 1],
        processes=2,
        on_wait=lambda: calls.append(None),
        on_failure=lambda _: None,
    )
    assert calls
