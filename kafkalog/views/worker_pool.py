"""Processes that take one item after another; what they yield of it comes here in order."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Generic, TypeVar

from kafkalog.errors import KafkaLogError, OutOfMemoryError
from kafkalog.views.shared_batches import SharedBatch, is_shared, receive_batch, send_batch

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# The most results kept of an item before its turn; then its process waits.
_MOST_WAITING = 32
# How long to wait before `on_wait` is called.
_WAIT_SECONDS = 0.25
# The most items per process that are begun ahead of the one whose turn it is.
_MOST_AHEAD = 2
# A result, or an error, or that nothing more comes of the item.
_Message = tuple[_Result | None, Exception | None, bool]
_fork = multiprocessing.get_context("fork")


class WorkerEndedError(KafkaLogError):
    """A process that read a file was ended from outside, as where memory runs out."""


class Turn:
    """In a process: whether all results of the items before its own are sent."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._has_come = False

    @property
    def has_come(self) -> bool:
        """Whether it is this process's turn."""
        if not self._has_come and self._connection.poll():
            self.wait()
        return self._has_come

    def wait(self) -> None:
        """Wait for the turn. Raises EOFError if the first process has ended."""
        if not self._has_come:
            self._connection.recv()
        self._has_come = True


Work = Callable[[_Item, Turn], Iterable[_Result]]


class WorkerPool(Generic[_Item, _Result]):
    """Forks of this process, which run `work`. With `gives_turns` each gets one message per item
    when its turn comes, and `work` has to wait for that. While the pool waits for a result, it
    calls `on_wait` a few times a second."""

    def __init__(
        self,
        work: Work[_Item, _Result],
        items: Sequence[_Item],
        processes: int,
        *,
        gives_turns: bool = False,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        self._items = len(items)
        self._gives_turns = gives_turns
        self._on_wait = on_wait
        self._given = 0  # items that a process has begun
        self._turn = 0
        self._waiting: dict[int, deque[_Message[_Result]]] = {}
        self._working: dict[Connection, int] = {}
        self._idle: list[Connection] = []
        self._processes: dict[Connection, ForkProcess] = {}
        for _ in range(processes):
            here, there = _fork.Pipe()
            inherited = [here, *self._processes]
            process = _fork.Process(target=_live, args=(work, items, there, inherited), daemon=True)
            process.start()
            there.close()
            self._processes[here] = process
            self._idle.append(here)

    def next_item(self) -> Iterator[_Result]:
        """Yield the results of the next item. Raises what its process raised, and
        WorkerEndedError."""
        number = self._turn
        self._give()
        for connection, item in self._working.items():
            if self._gives_turns and item == number:
                self._send(connection, None)
        results = self._waiting[number]
        while True:
            while not results:
                self._receive()
            result, error, is_last = results.popleft()
            if error is not None:
                raise error
            if is_last:
                break
            yield result  # type: ignore[misc]
        del self._waiting[number]
        self._turn += 1

    def _give(self) -> None:
        """Let idle processes begin items, some ahead of what is wanted now."""
        ahead = self._turn + _MOST_AHEAD * len(self._processes)
        while self._idle and self._given < min(self._items, ahead):
            connection = self._idle.pop()
            self._waiting[self._given] = deque()
            self._working[connection] = self._given
            self._send(connection, self._given)
            self._given += 1

    def _send(self, connection: Connection, message: int | None) -> None:
        try:
            connection.send(message)
        except (BrokenPipeError, ConnectionResetError):
            raise self._ended(connection) from None

    def _receive(self) -> None:
        """Take in what has come, of the item whose turn it is and of those that have room left."""
        open_for = [
            connection
            for connection, item in self._working.items()
            if item == self._turn or len(self._waiting[item]) < _MOST_WAITING
        ]
        while not (ready := set(wait(open_for, _WAIT_SECONDS))):
            self._on_wait()
        for connection in open_for:
            if connection in ready:
                self._take(connection)
        self._give()

    def _take(self, connection: Connection) -> None:
        message: _Message[_Result]
        try:
            message = _received(connection)
        except (EOFError, ConnectionResetError):
            message = None, self._ended(connection), False  # what was sent before comes first
        _, error, is_last = message
        self._waiting[self._working[connection]].append(message)
        if is_last or error is not None:
            del self._working[connection]
        if is_last:
            self._idle.append(connection)

    def _ended(self, connection: Connection) -> WorkerEndedError:
        process = self._processes[connection]
        process.join()
        return WorkerEndedError(
            f"a process that was reading ended with exit code {process.exitcode}: fewer at a time "
            "(--processes 1) need less memory"
        )

    def close(self) -> list[_Result]:
        """End the processes, whatever they are doing; return the results that are not taken
        yet."""
        for process in self._processes.values():
            process.terminate()
        messages = [message for waiting in self._waiting.values() for message in waiting]
        for connection, process in self._processes.items():
            process.join()
            messages += _left_in(connection)
            connection.close()
        return [result for result, _, _ in messages if result is not None]


def _left_in(connection: Connection) -> list[_Message[_Result]]:
    """Return what a process has sent before it was ended."""
    messages: list[_Message[_Result]] = []
    # Its last message can be cut short.
    with suppress(EOFError, OSError):
        while connection.poll():
            messages.append(_received(connection))
    return messages


def _received(connection: Connection) -> _Message[_Result]:
    message: _Message[_Result] = connection.recv()
    result, error, is_last = message
    if isinstance(result, SharedBatch):
        return receive_batch(connection), error, is_last
    return message


def _sent(connection: Connection, message: _Message[_Result]) -> None:
    result, error, is_last = message
    if is_shared(result):
        connection.send((SharedBatch(), error, is_last))
        send_batch(connection, result)
    else:
        connection.send(message)


def _live(
    work: Work[_Item, _Result],
    items: Sequence[_Item],
    connection: Connection,
    inherited: Sequence[Connection],
) -> None:
    """The life of a process: numbers of items come in, results go out."""
    # Ctrl-C and the end of a terminal reach all its processes: the first one decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # What is there already stays: no garbage collection has to look at it again.
    gc.freeze()
    for other in inherited:
        other.close()
    try:
        while True:
            for message in _messages(work(items[connection.recv()], Turn(connection))):
                _sent(connection, message)
    except (EOFError, BrokenPipeError):
        return  # the first process has ended
    except KeyboardInterrupt:
        return  # the first process has ended this one, and the work has cleaned up


def _messages(results: Iterable[_Result]) -> Iterator[_Message[_Result]]:
    try:
        for result in results:
            yield result, None, False
    except (KafkaLogError, OSError) as error:
        yield None, error, False
    except MemoryError:
        yield None, OutOfMemoryError(), False
    else:
        yield None, None, True
