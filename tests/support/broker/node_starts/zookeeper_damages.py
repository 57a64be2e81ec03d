"""Damage to the directories of a stopped broker with ZooKeeper, each of another kind; `orders-0` is
in d1 or d2."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.support.broker.node_starts.startup_damages import Damage, changed, made, removed, written

_MARK = f"orders-0.{7:032x}"
_OTHER_ID = "AAAAAAAAAAAAAAAAAAAAZQ"


def _orders(folder: Path) -> Path:
    (found,) = folder.glob("d?/orders-0")
    return found


def _beside(folder: Path) -> Path:
    """Return the log directory that orders-0 is not in."""
    return folder / ("d1" if _orders(folder).parent.name == "d2" else "d2")


def _of_orders(name: str, text: str | None) -> Damage:
    """Return what writes a file of orders-0, or removes it."""

    def damage(folder: Path) -> None:
        path = _orders(folder) / name
        if text is None:
            path.unlink()
        else:
            path.write_text(text)

    return damage


def _copied(place: Callable[[Path], Path], name: str) -> Damage:
    """Return what copies orders-0 into a log directory."""
    return lambda folder: shutil.copytree(_orders(folder), place(folder) / name)


def _padded(folder: Path) -> None:
    for path in sorted(_orders(folder).glob("*.timeindex"))[:-1]:
        with path.open("ab") as file:
            file.write(bytes(12))


def _torn(folder: Path) -> None:
    path = max(each for each in _orders(folder).glob("*.log") if each.stat().st_size)
    os.truncate(path, path.stat().st_size - 10)


def _same_directory_id(folder: Path) -> None:
    for path in folder.glob("d?/meta.properties"):
        lines = [
            line for line in path.read_text().splitlines() if not line.startswith("directory.id")
        ]
        path.write_text("\n".join([*lines, f"directory.id={_OTHER_ID}\n"]))


ZOOKEEPER_DAMAGES: dict[str, Damage] = {
    "none": lambda folder: None,
    "killed": removed("d?/.kafka_cleanshutdown"),
    "lost-and-found": made("d2/lost+found"),
    "meta-missing-in-d2": removed("d2/meta.properties"),
    "meta-missing": removed("d?/meta.properties"),
    "meta-empty": written("d2/meta.properties", ""),
    "other-broker-in-meta": changed("d2/meta.properties", "broker.id=0", "broker.id=7"),
    "other-broker-in-settings": changed("server.properties", "broker.id=0", "broker.id=3"),
    "version-1-in-meta": changed("d2/meta.properties", "version=0", "version=1"),
    "directory-id-twice": _same_directory_id,
    "topic-id-missing": _of_orders("partition.metadata", None),
    "topic-id-empty": _of_orders("partition.metadata", ""),
    "topic-id-garbage": _of_orders("partition.metadata", "garbage\n"),
    "no-such-topic": _copied(lambda folder: folder / "d1", "ghost-0"),
    "double": _copied(_beside, "orders-0"),
    "future": _copied(_beside, f"{_MARK}-future"),
    "delete-left": _copied(_beside, f"{_MARK}-delete"),
    "stray-left": _copied(_beside, f"{_MARK}-stray"),
    "recovery-point-garbage": written("d2/recovery-point-offset-checkpoint", "garbage\n"),
    "replication-garbage": written("d1/replication-offset-checkpoint", "garbage\n"),
    "log-start-beyond-end": lambda folder: (
        _orders(folder).parent / "log-start-offset-checkpoint"
    ).write_text("0\n1\norders 0 500\n"),
    "padded-time-indexes": _padded,
    "torn": _torn,
    "partition-gone": lambda folder: shutil.rmtree(_orders(folder)),
    "log-directory-gone": removed("d2"),
}
