"""Damages to a log of transactions and leader epochs, to be planned and then shown to a broker."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kafkalog.format.batch_header import LEADER_EPOCH_POSITION
from kafkalog.format.side_files.indexes import AbortedTransaction, write_transaction_index
from kafkalog.format.side_files.leader_epochs import EpochStart, write_leader_epochs
from kafkalog.format.transaction_marker import ABORT, COMMIT
from tests.support.logs.damageable_logs import SampleLog, flip, log_name

_EPOCHS = "leader-epoch-checkpoint"
_RANDOM_DAMAGES = 12
_PER_SEGMENT = 5

Damage = Callable[[Path, SampleLog], None]


def history(start_ms: int) -> SampleLog:
    """Five segments; the last two have an aborted transaction each, and two that stay open.

    Epoch 1 begins within the third segment.
    """
    log, idempotent, one, two, three = SampleLog(start_ms), 7, 4711, 4712, 4713
    for _ in range(_PER_SEGMENT):
        log.add(5, idempotent)
    log.roll()
    log.add(5, one, in_transaction=True)
    for _ in range(_PER_SEGMENT):
        log.add(5)
    log.end(one, ABORT)
    log.roll()
    log.add(5, one, in_transaction=True)
    log.add(5, idempotent)
    log.epoch = 1
    log.add(5)
    log.end(one, COMMIT)
    log.add(5, two, in_transaction=True)
    log.roll()
    for _ in range(_PER_SEGMENT):
        log.add(5)
    log.add(5, one, in_transaction=True)
    log.end(one, ABORT)
    log.roll()
    log.add(5, one, in_transaction=True)
    log.add(5, three, in_transaction=True)
    log.end(one, ABORT)
    for _ in range(_PER_SEGMENT):
        log.add(5, idempotent)
    return log


@dataclass(frozen=True, slots=True)
class PlannedDamage:
    """A damage, and what the log directory's checkpoints say of the partition.

    `recovery_segment` is the number of the segment at whose base the recovery point lies. With
    some damages a broker starts only if it recovers, which it does not after a clean stop.
    """

    name: str
    damage: Damage
    recovery_segment: int = 0
    log_start_offset: int = 0
    is_fatal_after_clean_stop: bool = False

    def __str__(self) -> str:
        return self.name


def _last_log(directory: Path) -> Path:
    return max(directory.glob("*.log"))


def _append(data: bytes) -> Damage:
    def damage(directory: Path, _: SampleLog) -> None:
        with _last_log(directory).open("ab") as file:
            file.write(data)

    return damage


def _cut(segment: int, size: int) -> Damage:
    """Negative sizes count from the end."""

    def damage(directory: Path, log: SampleLog) -> None:
        path = directory / log_name(log.segments[segment])
        data = path.read_bytes()
        path.write_bytes(data[:size])

    return damage


def _overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def _remove(*names: str) -> Damage:
    """Files by glob pattern; at least one must be there."""

    def damage(directory: Path, _: SampleLog) -> None:
        found = [path for name in names for path in directory.glob(name)]
        assert found
        for path in found:
            path.unlink()

    return damage


def _flip(segment: int, batch: int, at: int = 70) -> Damage:
    """One bit of a batch, counted within its segment; negative numbers from the end."""

    def damage(directory: Path, log: SampleLog) -> None:
        base = log.segments[segment]
        flip(directory, [each for each in log.batches if each.segment == base][batch], at)

    return damage


def _epoch(value: int) -> Damage:
    """A wrong leader epoch in the fourth segment; no checksum covers it."""

    def damage(directory: Path, log: SampleLog) -> None:
        base = log.segments[3]
        batch = [each for each in log.batches if each.segment == base][2]
        position = batch.position + LEADER_EPOCH_POSITION
        _overwrite(directory / log_name(base), position, value.to_bytes(4, "big"))

    return damage


def _swap_batches(directory: Path, log: SampleLog) -> None:
    base = log.segments[4]
    batches = [each for each in log.batches if each.segment == base]
    batches[3], batches[4] = batches[4], batches[3]
    (directory / log_name(base)).write_bytes(b"".join(each.data for each in batches))


def _epochs_beyond_the_end(directory: Path, log: SampleLog) -> None:
    epochs = [EpochStart(0, 0), EpochStart(1, log.next_offset + 5)]
    (directory / _EPOCHS).write_text(write_leader_epochs(epochs))


def _transaction_index_of_lower_offsets(directory: Path, log: SampleLog) -> None:
    """As if copied from the segment before: a broker recovers such a segment after any stop."""
    entry = AbortedTransaction(4711, 1, 2, 3)
    path = directory / log_name(log.segments[3], ".txnindex")
    path.write_bytes(write_transaction_index([entry]))


def _leftovers(directory: Path, log: SampleLog) -> None:
    """Files on their way out, and an index without its log."""
    first, second = log.segments[:2]
    names = (
        log_name(first, ".log.deleted"),
        log_name(first, ".snapshot.deleted"),
        log_name(second, ".log.cleaned"),
        log_name(second, ".index.cleaned"),
        log_name(3, ".index"),
        log_name(3, ".timeindex"),
    )
    for name in names:
        (directory / name).write_bytes(bytes(24))


def _garbage_snapshots(directory: Path, log: SampleLog) -> None:
    for base in log.segments[3:]:
        (directory / log_name(base, ".snapshot")).write_bytes(b"no snapshot at all")


def _random_damage(seed: int) -> Damage:
    """A range somewhere becomes other bytes, zeros or nothing, or a bit of it flips."""

    def damage(directory: Path, log: SampleLog) -> None:
        source = random.Random(seed)
        path = directory / log_name(source.choice(log.segments))
        data = path.read_bytes()
        start = source.randrange(len(data))
        end = min(len(data), start + source.choice((1, 8, 61, 700, 4096)))
        flipped = bytes([data[start] ^ 1 << source.randrange(8)])
        kinds = (
            data[:start] + flipped + data[start + 1 :],
            data[:start] + bytes(end - start) + data[end:],
            data[:start] + source.randbytes(end - start) + data[end:],
            data[:start] + source.randbytes(end - start) + data[start:],
            data[:start] + data[end:],
            data[:start],
        )
        path.write_bytes(source.choice(kinds))

    return damage


PLANNED_DAMAGES = (
    PlannedDamage("whole", lambda _, __: None),
    PlannedDamage("flip-in-the-last-segment", _flip(4, 4)),
    PlannedDamage("flip-in-the-second-segment", _flip(1, 3)),
    PlannedDamage("flip-below-the-recovery-point", _flip(1, 3), recovery_segment=4),
    PlannedDamage("flip-in-an-abort-marker", _flip(4, 2)),
    PlannedDamage("flip-where-epoch-1-begins", _flip(2, 2)),
    PlannedDamage("last-batch-cut", _cut(4, -100)),
    PlannedDamage("second-segment-cut", _cut(1, 2000)),
    PlannedDamage("third-segment-emptied", _cut(2, 0)),
    PlannedDamage("last-segment-emptied", _cut(4, 0)),
    PlannedDamage("last-segment-begins-with-a-cut-batch", _cut(4, 40)),
    PlannedDamage("zeros-behind-the-end", _append(bytes(5000)), is_fatal_after_clean_stop=True),
    PlannedDamage("zeros-within-a-header", _append(bytes(30)), is_fatal_after_clean_stop=True),
    PlannedDamage("seventeen-bytes-behind-the-end", _append(b"\xff" * 17)),
    PlannedDamage(
        "garbage-behind-the-end",
        _append(random.Random(1).randbytes(900)),
        is_fatal_after_clean_stop=True,
    ),
    PlannedDamage("lower-epoch", _epoch(0)),
    PlannedDamage("higher-epoch", _epoch(77)),
    PlannedDamage("batches-swapped", _swap_batches),
    PlannedDamage("indexes-missing", _remove("*.index"), recovery_segment=4),
    PlannedDamage("time-indexes-missing", _remove("*.timeindex"), recovery_segment=4),
    PlannedDamage("transaction-indexes-missing", _remove("*.txnindex"), recovery_segment=4),
    PlannedDamage("snapshots-missing", _remove("*.snapshot"), recovery_segment=4),
    PlannedDamage("snapshots-garbage", _garbage_snapshots, recovery_segment=4),
    PlannedDamage("epochs-missing", _remove(_EPOCHS)),
    PlannedDamage("epochs-missing-above-the-recovery-point", _remove(_EPOCHS), recovery_segment=4),
    PlannedDamage("epochs-beyond-the-end", _epochs_beyond_the_end, recovery_segment=4),
    PlannedDamage(
        "transaction-index-of-lower-offsets",
        _transaction_index_of_lower_offsets,
        recovery_segment=4,
    ),
    PlannedDamage("leftovers", _leftovers, recovery_segment=4),
    PlannedDamage("log-start-in-the-third-segment", lambda _, __: None, log_start_offset=70),
    PlannedDamage("log-start-behind-the-end", lambda _, __: None, log_start_offset=1000),
    PlannedDamage(
        "log-start-behind-what-is-left", _flip(2, 2), log_start_offset=100, recovery_segment=1
    ),
    *(PlannedDamage(f"random-{seed}", _random_damage(seed)) for seed in range(_RANDOM_DAMAGES)),
)


def _other_version(directory: Path, log: SampleLog) -> None:
    path = directory / log_name(log.segments[3], ".txnindex")
    path.write_bytes(b"\x00\x09" + path.read_bytes()[2:])


def _not_in_the_open_transaction(directory: Path, _: SampleLog) -> None:
    """Producer 4713 goes on without ending its transaction, and outside of it."""
    log = history(0)
    batch = log.add(5, 4713)
    with _last_log(directory).open("ab") as file:
        file.write(batch.data)


# With any of these no broker starts.
FATAL_DAMAGES = (
    PlannedDamage(
        "epochs-garbage", lambda directory, _: _garbage(directory / _EPOCHS), recovery_segment=4
    ),
    PlannedDamage("transaction-index-of-another-version", _other_version, recovery_segment=4),
    PlannedDamage("batch-outside-the-open-transaction", _not_in_the_open_transaction),
)


def _garbage(path: Path) -> None:
    path.write_bytes(b"no epochs\n")
