"""Logs that grow, roll, are cleaned and lose their oldest segments between triggers of a stream:
every record that is there when its turn comes is read once, in order. Rules: F520, F522, F525."""

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.logs.streamed_logs import DrivenStream, StreamedLog

Key = tuple[str, int]
Offsets = dict[Key, list[int]]

_CHANGES = ("append", "append", "append", "roll", "clean", "delete", "new", "restart")
_LIMITS: tuple[dict[str, Any], ...] = ({}, {"maxOffsetsPerTrigger": 7}, {"maxBytesPerTrigger": 400},
           {"maxOffsetsPerTrigger": 9, "maxBytesPerTrigger": 300})  # fmt: skip


@pytest.mark.parametrize("limits", _LIMITS, ids=lambda limits: "+".join(limits) or "none")
@settings(max_examples=settings().max_examples // 5)
@given(seed=st.integers(0, 2**32))
def test_every_record_is_read_once_and_in_order(limits: dict[str, Any], seed: int) -> None:
    source = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        _grow_and_read(Path(place) / "log", limits, source)


def _grow_and_read(log_dir: Path, limits: dict[str, Any], source: random.Random) -> None:
    logs = [StreamedLog(log_dir, "orders", number, source.randrange(99)) for number in range(2)]
    stream = DrivenStream(log_dir, startingOffsets="earliest", **limits)
    expected: Offsets = {}
    for _ in range(source.randint(1, 12)):
        _change(source, log_dir, logs, stream)
        before = stream.offsets
        stream.trigger()
        if "maxOffsetsPerTrigger" in limits:
            taken = sum(end - before.get(key, 0) for key, end in stream.offsets.items())
            # One at least of each partition that has something new.
            assert taken <= max(limits["maxOffsetsPerTrigger"], len(logs))
        _note(expected, logs, before, stream.offsets)
    before = stream.offsets
    stream.to_the_end()
    assert stream.offsets == {log.key: log.next_offset for log in logs}
    _note(expected, logs, before, stream.offsets)
    assert stream.read == {key: offsets for key, offsets in expected.items() if offsets}


def _note(
    expected: Offsets, logs: list[StreamedLog], before: dict[Key, int], after: dict[Key, int]
) -> None:
    """What a consumer that had got so far would get now, up to the new offsets."""
    for log in logs:
        start, end = before.get(log.key, 0), after.get(log.key, 0)
        taken = [offset for offset in log.offsets if start <= offset < end]
        expected.setdefault(log.key, []).extend(taken)


def _change(
    source: random.Random, log_dir: Path, logs: list[StreamedLog], stream: DrivenStream
) -> None:
    log, change = source.choice(logs), source.choice(_CHANGES)
    if change == "append":
        log.append(source.randint(1, 4))
    elif change == "roll":
        log.roll()
    elif change == "clean":
        log.clean()
    elif change == "delete":
        log.delete_up_to(stream.offsets.get(log.key, 0))
    elif change == "restart":
        stream.restart()
    elif len(logs) < 4:
        logs.append(StreamedLog(log_dir, "payments", len(logs)))
