"""Damage in closed segments of a compacted topic, and whether the cleaner of Kafka 4.4.0 marked the
partition as uncleanable.

tests/broker/damage starts brokers on each; tests/golden has the outcomes.
"""

from pathlib import Path
from typing import NamedTuple

from tests.support.broker.node_starts.read_damages import all_of, config_record, metadata
from tests.support.broker.node_starts.startup_damages import Damage

# Its first batch takes 77 bytes.
_SEGMENT = f"d2/orders-0/{3:020d}.log"


class CleanerDamage(NamedTuple):
    """Damage, and whether the cleaner gives the partition up."""

    make: Damage
    stops: bool


def _quick_cleaner(folder: Path) -> None:
    with (folder / "server.properties").open("a") as file:
        file.write("log.cleaner.backoff.ms=200\nlog.cleaner.min.cleanable.ratio=0.01\n")


_COMPACTED = all_of(
    metadata(lambda folder: [config_record(2, "orders", "cleanup.policy", "compact")]),
    _quick_cleaner,
)


def _changed(position: int, data: bytes | None = None) -> Damage:
    """Return what writes bytes at a position, by default the inverted byte there."""

    def change(folder: Path) -> None:
        content = bytearray((folder / _SEGMENT).read_bytes())
        new = bytes([content[position] ^ 255]) if data is None else data
        content[position : position + len(new)] = new
        (folder / _SEGMENT).write_bytes(content)

    return all_of(_COMPACTED, change)


def _cut(size: int) -> Damage:
    def change(folder: Path) -> None:
        content = (folder / _SEGMENT).read_bytes()
        (folder / _SEGMENT).write_bytes(content[:-size])

    return all_of(_COMPACTED, change)


def _appended(data: bytes) -> Damage:
    def change(folder: Path) -> None:
        with (folder / _SEGMENT).open("ab") as file:
            file.write(data)

    return all_of(_COMPACTED, change)


CLEANER_DAMAGES = {
    "sound": CleanerDamage(_COMPACTED, stops=False),
    "batch-of-zeros": CleanerDamage(_changed(0, bytes(77)), stops=True),
    "length": CleanerDamage(_changed(10), stops=True),
    "magic": CleanerDamage(_changed(16), stops=True),
    "checksum": CleanerDamage(_changed(18), stops=False),
    "value": CleanerDamage(_changed(62), stops=False),
    "cut-off": CleanerDamage(_cut(20), stops=True),
    "zeros-at-end": CleanerDamage(_appended(bytes(64)), stops=True),
}
