"""Which request goes on next, where that takes time or reads files: beside the event loop.

Work is done in turns. One runs at a time, that of the request that has had the least so far: a
small request overtakes large ones. A turn that takes long, as when it reads a large file, goes on
in its thread, and the next one begins meanwhile.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Any, Generic, TypeVar

_Result = TypeVar("_Result")


class Pause(Enum):
    """Why work pauses: another request may go on now, or has to, for it reads what is needed."""

    STEP = 0
    BUSY = 1


# Work that others may interrupt wherever it yields.
Steps = Generator[Pause, None, _Result]

# After so long another request's turn begins.
_TURN_SECONDS = 0.02
# A turn that has not ended by then makes room for another one.
_LONG_SECONDS = 0.05
# At most this many turns may be longer than that at a time.
_MOST_LONG = 32
# When to look again for a partition that another request reads.
_BUSY_SECONDS = 0.01
# A turn counts as much as so many bytes of a request, which take about a quarter of its time.
_TURN_BYTES = 64 * 1024


def one_step(read: Callable[[], _Result]) -> Steps[_Result]:
    """Return the steps of work that nothing interrupts."""
    yield from ()
    return read()


@dataclass(slots=True)
class _Turn(Generic[_Result]):
    """How a turn has ended: with a result, or with more to do. `is_busy` if it needs a partition
    that another request reads."""

    result: _Result | None = None
    is_done: bool = False
    is_busy: bool = False


class Turns:
    """The turns of one event loop's requests."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_MOST_LONG + 1, thread_name_prefix="kafkalog-serve")
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self._is_free = True
        self._long = 0
        self._shared: dict[str, asyncio.Task[Any]] = {}

    async def run(self, steps: Steps[_Result], size: int = 0) -> _Result:
        """Return what `steps` return; `size` is that of the request that asks for them, in bytes.
        Raises what they raise."""
        while True:
            await self._begin(size)
            turn = await self._taken(steps)
            if turn.is_done:
                return turn.result  # type: ignore[return-value]
            size += _TURN_BYTES
            if turn.is_busy:
                await asyncio.sleep(_BUSY_SECONDS)

    async def once(self, name: str, read: Callable[[], _Result]) -> _Result:
        """Return what `read` returns, which is called once for all that ask for this name. After an
        error the next who asks calls it again."""
        task = self._shared.get(name)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._shared[name] = asyncio.create_task(self.run(one_step(read)))
        result: _Result = await asyncio.shield(task)
        return result

    def close(self) -> None:
        """Begin no more turns."""
        for task in self._shared.values():
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _begin(self, work: int) -> None:
        """Wait until it is the turn of a request that has had so much."""
        if self._is_free:
            self._is_free = False
            return
        waiting = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (work, next(self._order), waiting))
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                self._next()
            raise

    def _next(self) -> None:
        """Let the next one begin."""
        while self._waiting:
            _, _, waiting = heapq.heappop(self._waiting)
            if not waiting.done():
                waiting.set_result(None)
                return
        self._is_free = True

    async def _taken(self, steps: Steps[_Result]) -> _Turn[_Result]:
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._threads, _turn, steps)
        is_long = False

        def make_room() -> None:
            nonlocal is_long
            if self._long < _MOST_LONG:
                is_long = True
                self._long += 1
                self._next()

        def end(ended: asyncio.Future[_Turn[_Result]]) -> None:
            timer.cancel()
            # After the client has left, an error is not of interest.
            _ = ended.cancelled() or ended.exception()
            if is_long:
                self._long -= 1
            else:
                self._next()

        timer = loop.call_later(_LONG_SECONDS, make_room)
        running.add_done_callback(end)
        # Whoever waits may leave: the turn goes on, and ends by itself.
        return await asyncio.shield(running)


def _turn(steps: Steps[_Result]) -> _Turn[_Result]:
    """Do steps until the turn is over."""
    end = time.monotonic() + _TURN_SECONDS
    turn: _Turn[_Result] = _Turn()
    try:
        while time.monotonic() < end:
            if next(steps) is Pause.BUSY:
                turn.is_busy = True
                break
    except StopIteration as stopped:
        turn.result, turn.is_done = stopped.value, True
    return turn
