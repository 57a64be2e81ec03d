"""A function over files on several processes, its results in the order of the files.

Results come to the first process; texts are written by the process that made them, in its turn.
"""

from __future__ import annotations

import io
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import BinaryIO, TypeVar

from kafkalog.errors import KafkaLogError
from kafkalog.storage.files.files import has_connections
from kafkalog.views.worker_pool import Turn, WorkerPool

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
Text = bytes | memoryview

# The most text that a process holds before its turn; then it waits.
_MOST_HELD_BYTES = 32 * 1024 * 1024
_BYTES_PER_PROCESS = 16 * 1024 * 1024
# About what two processes cost, with the pages that they copy and give back; and how long to wait
# for a disk alone.
_FORKS_COST_SECONDS, _MOST_ALONE_SECONDS = 0.25, 1.0


def processes_for(total_bytes: int, requested: int | None) -> int:
    """Return how many processes read this many bytes: those requested, else one per 16 MiB or part
    of it, on as many cores as there are. To start one takes as long as to read some MiB."""
    if requested is not None:
        return requested
    useful = -(-total_bytes // _BYTES_PER_PROCESS)
    return max(1, min(useful, len(os.sched_getaffinity(0))))


def in_order(
    function: Callable[[_Item], Iterable[_Result]],
    items: Sequence[_Item],
    *,
    processes: int,
    on_done: Callable[[_Item], None] = lambda item: None,
) -> Generator[_Result, None, None]:
    """Return an iterator of what the function yields of each item, in the order of the items, as
    it comes.

    Processes are forks of this one, made now, in the thread that calls: function and items need not
    be pickled, results are. An item is begun as soon as a process is free, once the first result is
    requested, and runs ahead of its turn by a few results only. `on_done` is called with each
    finished item, for progress. An error that the function raises is raised here in its turn.
    Whoever stops early, by closing the iterator or by an exception, ends the processes. Raises
    WorkerEndedError where a process was killed.
    """
    if _is_alone(items, processes):
        return _alone(function, items, on_done)
    pool = WorkerPool(lambda item, turn: function(item), items, min(processes, len(items)))
    return _results(pool, items, on_done)


def light_in_order(
    function: Callable[[_Item], Iterable[_Result]],
    items: Sequence[_Item],
    *,
    processes: int,
    on_done: Callable[[_Item], None] = lambda item: None,
) -> Generator[_Result, None, None]:
    """Return the same where most items take a moment, such as a look at some headers: processes are
    made when this one has worked for as long as they cost, or waited for longer, and take what is
    left. Rule: docs/report.md F1386."""
    begun, begun_work = time.monotonic(), time.process_time()
    for number, item in enumerate(items):
        if (
            time.process_time() - begun_work > _FORKS_COST_SECONDS
            or time.monotonic() - begun > _MOST_ALONE_SECONDS
        ):
            yield from in_order(function, items[number:], processes=processes, on_done=on_done)
            return
        yield from _alone(function, [item], on_done)


def _alone(
    function: Callable[[_Item], Iterable[_Result]],
    items: Sequence[_Item],
    on_done: Callable[[_Item], None],
) -> Generator[_Result, None, None]:
    for item in items:
        yield from function(item)
        on_done(item)


def _results(
    pool: WorkerPool[_Item, _Result], items: Sequence[_Item], on_done: Callable[[_Item], None]
) -> Generator[_Result, None, None]:
    with closing(pool):
        for item in items:
            yield from pool.next_item()
            on_done(item)


def all_results(
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
    *,
    processes: int,
    on_wait: Callable[[], None],
    on_failure: Callable[[list[_Result]], None],
) -> list[_Result]:
    """Return what the function returns for each item, in the order of the items.

    `on_wait` is called a few times a second while processes work. If anything is raised,
    `on_failure` first receives the results that there are; processes are ended by SIGTERM before.
    Raises as `in_order` does.
    """
    results: list[_Result] = []
    if _is_alone(items, processes):
        try:
            for item in items:
                results.append(function(item))
        except BaseException:
            on_failure(results)
            raise
        return results

    def work(item: _Item, _: Turn) -> Iterator[_Result]:
        yield function(item)

    pool = WorkerPool(work, items, min(processes, len(items)), on_wait=on_wait)
    try:
        for _ in items:
            results.extend(pool.next_item())
    except BaseException:
        on_failure([*results, *pool.close()])
        raise
    pool.close()
    return results


def _is_alone(items: Sequence[_Item], processes: int) -> bool:
    """Return whether this process does it all; where it is connected with a store it has to."""
    return processes == 1 or len(items) <= 1 or has_connections()


def written_in_order(
    function: Callable[[_Item], Iterable[tuple[Text, _Result]]],
    items: Sequence[_Item],
    output: BinaryIO,
    *,
    processes: int,
    on_done: Callable[[_Item], None] = lambda item: None,
) -> Generator[_Result, None, None]:
    """Yield the results of a function that yields texts with results: the texts go to the output,
    in the order of the items, and a result comes here once its text is written.

    A process holds up to 32 MiB of text until it is its turn. It writes to the output's file
    descriptor; where there is none, this process does it all. A text has to be valid only until
    the next one is made. Raises what writing raises, too.
    """
    descriptor = _descriptor(output)
    if _is_alone(items, processes) or descriptor is None:
        for item in items:
            for text, result in function(item):
                output.write(text)
                yield result
            on_done(item)
        return
    output.flush()
    # Forks have it each for itself, and of it what they use.
    room = memoryview(bytearray(_MOST_HELD_BYTES))
    work = partial(_written, function, descriptor, room)
    pool = WorkerPool(work, items, min(processes, len(items)), gives_turns=True)
    yield from _results(pool, items, on_done)


def _descriptor(output: BinaryIO) -> int | None:
    try:
        return output.fileno()
    except io.UnsupportedOperation:
        return None


def _written(
    function: Callable[[_Item], Iterable[tuple[Text, _Result]]],
    descriptor: int,
    room: memoryview,
    item: _Item,
    turn: Turn,
) -> Iterator[_Result]:
    """Yield the results of an item, its texts held until it is its turn or the room is full."""
    held, results = 0, deque[_Result]()
    made = iter(function(item))
    raised: Exception | None = None
    while True:
        try:
            text, result = next(made)
        except StopIteration:
            break
        except (KafkaLogError, OSError, MemoryError) as error:
            raised = error  # when what was made before is written
            break
        results.append(result)
        if held + len(text) <= len(room) and not turn.has_come:
            room[held : held + len(text)] = text
            held += len(text)
            continue
        turn.wait()
        _write(descriptor, room[:held])
        _write(descriptor, text)
        held = 0
        while results:
            yield results.popleft()
    turn.wait()
    _write(descriptor, room[:held])
    yield from results
    if raised is not None:
        raise raised


def _write(descriptor: int, text: Text) -> None:
    """Write all of it, however little a pipe takes at a time."""
    left = memoryview(text)
    while left:
        left = left[os.write(descriptor, left) :]
