"""A function over files on several processes, its results in the order of the files."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, Generic, TypeVar

import click

from kafkalog.errors import KafkaLogError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# So many results of a file that is not yet its turn are kept; then its process waits.
_MOST_WAITING = 32
# So many files for each process are read ahead of the one whose turn it is.
_MOST_AHEAD = 2
# A result, or an error, or that nothing more comes of the file.
_Told = tuple[_Result, Exception | None, bool]
_fork = multiprocessing.get_context("fork")


class WorkerEndedError(KafkaLogError):
    """A process that read a file was ended from outside, as where memory runs out."""


def processes_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option --processes, given to the command as `processes`."""
    return click.option(
        "--processes",
        metavar="N",
        type=click.IntRange(min=1),
        default=len(os.sched_getaffinity(0)),
        show_default="all cores",
        help="How many processes read.",
    )(function)


def in_order(
    function: Callable[[_Item], Iterable[_Result]],
    items: Sequence[_Item],
    *,
    processes: int,
    on_done: Callable[[_Item], None] = lambda item: None,
) -> Generator[_Result, None, None]:
    """What the function yields of each item, in the order of the items, as it comes.

    Processes are forks of this one: function and items need not be pickled, results are. An item
    is begun as soon as a process is free, and runs ahead of its turn by a few results only.
    `on_done` is told each item when it is through, for progress. An error that the function raises
    is raised here in its turn. Whoever stops early, by closing the iterator or by an exception,
    ends the processes. Raises WorkerEndedError where a process was killed.
    """
    if processes == 1 or len(items) <= 1:
        for item in items:
            yield from function(item)
            on_done(item)
        return
    with closing(_Pool(function, items, min(processes, len(items)))) as pool:
        for item in items:
            yield from pool.next_item()
            on_done(item)


class _Pool(Generic[_Item, _Result]):
    """Processes that take one item after another; their results wait here for their turn."""

    def __init__(
        self, function: Callable[[_Item], Iterable[_Result]], items: Sequence[_Item], processes: int
    ) -> None:
        self._items = len(items)
        self._given = 0  # items that a process has begun
        self._turn = 0
        self._waiting: dict[int, deque[_Told[_Result]]] = {}
        self._working: dict[Connection, int] = {}
        self._idle: list[Connection] = []
        self._processes: dict[Connection, ForkProcess] = {}
        for _ in range(processes):
            here, there = _fork.Pipe()
            inherited = [here, *self._processes]
            process = _fork.Process(
                target=_work, args=(function, items, there, inherited), daemon=True
            )
            process.start()
            there.close()
            self._processes[here] = process
            self._idle.append(here)

    def next_item(self) -> Iterator[_Result]:
        """The results of the next item."""
        number = self._turn
        self._give()
        results = self._waiting[number]
        while True:
            while not results:
                self._receive()
            result, error, is_last = results.popleft()
            if error is not None:
                raise error
            if is_last:
                break
            yield result
        del self._waiting[number]
        self._turn += 1

    def _give(self) -> None:
        """Let idle processes begin items, some ahead of what is wanted now."""
        ahead = self._turn + _MOST_AHEAD * len(self._processes)
        while self._idle and self._given < min(self._items, ahead):
            connection = self._idle.pop()
            self._waiting[self._given] = deque()
            self._working[connection] = self._given
            connection.send(self._given)
            self._given += 1

    def _receive(self) -> None:
        """Take in what has come, of the item whose turn it is and of those that have room left."""
        open_for = [
            connection
            for connection, item in self._working.items()
            if item == self._turn or len(self._waiting[item]) < _MOST_WAITING
        ]
        ready = set(wait(open_for))
        for connection in open_for:
            if connection in ready:
                self._take(connection)
        self._give()

    def _take(self, connection: Connection) -> None:
        try:
            told: _Told[_Result] = connection.recv()
        except EOFError:
            process = self._processes[connection]
            process.join()
            raise WorkerEndedError(
                f"a process that was reading ended with exit code {process.exitcode}: fewer at a "
                "time (--processes 1) need less memory"
            ) from None
        _, error, is_last = told
        self._waiting[self._working[connection]].append(told)
        if is_last or error is not None:
            del self._working[connection]
        if is_last:
            self._idle.append(connection)

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        for process in self._processes.values():
            process.terminate()
        for connection, process in self._processes.items():
            process.join()
            connection.close()


def _work(
    function: Callable[[_Item], Iterable[_Result]],
    items: Sequence[_Item],
    connection: Connection,
    inherited: Sequence[Connection],
) -> None:
    """The life of a process: numbers of items come in, results go out."""
    # Ctrl-C reaches all processes of a terminal: the first one decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in inherited:
        other.close()
    try:
        while True:
            for result in function(items[connection.recv()]):
                connection.send((result, None, False))
            connection.send((None, None, True))
    except (EOFError, BrokenPipeError):
        return  # the first process is gone
    except (KafkaLogError, OSError) as error:
        connection.send((None, error, False))
