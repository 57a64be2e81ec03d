"""Contenders take turns: what a noisy machine does to one, it does to all of the same round."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

# Runs that are shorter than this are repeated, so that the clock's and the loop's part vanishes.
_LEAST_SECONDS = 0.02


@dataclass(slots=True)
class Contender:
    """Something to be timed. `run` gives a count that must be `expected` every time.

    `share` is how much of the whole input it gets: the slow ones get less, rates are compared.
    """

    name: str
    run: Callable[[], int]
    expected: int
    share: float = 1.0
    seconds: list[float] = field(default_factory=list)  # per round, scaled to the whole input
    _repetitions: int = 1

    def warm_up(self) -> None:
        """Run once and find out how often to run in a round."""
        self._timed()
        self._repetitions = max(int(_LEAST_SECONDS / self._timed()), 1)

    def take_turn(self) -> None:
        gc.collect()
        self.seconds.append(self._timed() / self.share)

    def _timed(self) -> float:
        start = time.perf_counter()
        for _ in range(self._repetitions):
            count = self.run()
        seconds = (time.perf_counter() - start) / self._repetitions
        if count != self.expected:
            raise AssertionError(f"{self.name}: {count} instead of {self.expected}")
        return seconds

    @property
    def median_seconds(self) -> float:
        return statistics.median(self.seconds)


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median of the rounds' ratios, and the quartiles around it."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        digits = 2 if self.median < 10 else 1 if self.median < 100 else 0
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}–{self.high:.{digits}f})"


def ratio(slower: Contender, faster: Contender) -> Ratio:
    """How many times as long the first takes as the second, from round to round."""
    ratios = [a / b for a, b in zip(slower.seconds, faster.seconds, strict=True)]
    if len(ratios) == 1:
        return Ratio(ratios[0], ratios[0], ratios[0])
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Ratio(median, low, high)


def measure(contenders: Sequence[Contender], rounds: int) -> float:
    """Let all take turns, another one first in each round.

    Gives the share of the time in which this process had a processor.
    """
    for contender in contenders:
        contender.warm_up()
    start, busy = time.perf_counter(), time.process_time()
    for number in range(rounds):
        first = number % len(contenders)
        for contender in [*contenders[first:], *contenders[:first]]:
            contender.take_turn()
    return (time.process_time() - busy) / (time.perf_counter() - start)


@contextmanager
def one_processor(number: int | None) -> Iterator[None]:
    """Keep this process on one processor: the given one, or the last that it may use."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed) if number is None else number})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
