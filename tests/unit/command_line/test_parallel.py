"""A function over files on several processes: results in order, errors in their turn, no process
left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator

import pytest

from kafkalog.command_line.parallel import WorkerEndedError, in_order
from kafkalog.errors import LogDirError

# The threads of other tests, such as Spark's, hold nothing that these processes want.
pytestmark = pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")


def slow_squares(number: int) -> Iterator[tuple[int, int]]:
    """Two results of a number, the later the smaller it is."""
    time.sleep(0.01 * (5 - number % 5))
    yield number, number**2
    yield number, number**3


@pytest.mark.parametrize("processes", [1, 2, 3, 20])
def test_results_come_in_the_order_of_the_files(processes: int) -> None:
    done: list[int] = []
    found = list(in_order(slow_squares, range(12), processes=processes, on_done=done.append))
    assert found == [(n, power) for n in range(12) for power in (n**2, n**3)]
    assert done == list(range(12))


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
    results.close()  # type: ignore[attr-defined]
    assert multiprocessing.active_children() == []


def killed(number: int) -> Iterator[int]:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    yield number


def test_a_process_that_is_killed_is_an_error() -> None:
    with pytest.raises(WorkerEndedError, match=r"exit code -9.*--processes 1"):
        list(in_order(killed, range(4), processes=2))
    assert multiprocessing.active_children() == []
