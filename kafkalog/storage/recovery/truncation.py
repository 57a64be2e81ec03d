"""Where a follower truncates its log when another replica has become the leader: rules on plain
values. Rules: docs/format.md F790 to F792.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.format.side_files.leader_epochs import EpochStart, epoch_end, with_epoch, without_end

# A new leader's epoch is later than all that any replica has.
_NEW_EPOCH = 2**31


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """What counts of a replica once its broker runs: its offsets, its leader epochs, which rise as
    their starts do, and its high watermark, 0 where no checkpoint has it."""

    log_start: int
    log_end: int
    epochs: tuple[EpochStart, ...] = ()
    high_watermark: int = 0


def truncated_end(follower: ReplicaLog, leader: ReplicaLog) -> int | None:
    """Return where a follower's log ends once it has truncated what its leader does not have, and
    before it copies what it lacks. None if it drops all of it and begins at the leader's log
    start."""
    led, epochs, end = _led(leader), list(follower.epochs), follower.log_end
    if not epochs:
        end = min(end, follower.high_watermark)
    while epochs and end >= leader.log_start:
        answer = epoch_end(led, epochs[-1].epoch, leader.log_end)
        if answer is None or (answer.epoch == epochs[-1].epoch and answer.end_offset >= end):
            break
        own = epoch_end(epochs, answer.epoch, end) or answer
        # Of an epoch that it does not have it keeps all that is earlier, and asks again.
        end = min(end, own.end_offset)
        if own.epoch == answer.epoch:
            end = min(end, answer.end_offset)
        epochs = without_end(epochs, end)
    return None if end < leader.log_start else min(end, leader.log_end)


def resumed_offset(leader: ReplicaLog, committed: int, epoch: int | None) -> int | None:
    """Return where a consumer continues that has committed an offset after a record of a leader
    epoch, None if the commit has no epoch. It asks the new leader where that epoch ends. None where
    the offset is out of the leader's range, and auto.offset.reset decides."""
    offset = committed
    if epoch is not None and leader.epochs:
        answer = epoch_end(_led(leader), epoch, leader.log_end)
        if answer is not None and (answer.epoch < epoch or answer.end_offset < committed):
            offset = answer.end_offset
    return offset if leader.log_start <= offset <= leader.log_end else None


def _led(leader: ReplicaLog) -> list[EpochStart]:
    """Return the epochs of a replica that has just become the leader."""
    return with_epoch(leader.epochs, EpochStart(_NEW_EPOCH, leader.log_end))
