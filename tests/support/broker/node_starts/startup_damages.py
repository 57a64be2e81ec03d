"""Damage to the directories of a stopped node, each of a kind that tests/golden has no case of."""

import shutil
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path], object]
_ORDERS = "d2/orders-0"
_FIRST = "00000000000000000000"


def written(path: str, text: str) -> Damage:
    """Return what writes a file."""
    return lambda folder: (folder / path).write_text(text)


def changed(path: str, old: str, new: str) -> Damage:
    """Return what replaces a text in a file, which has it."""

    def change(folder: Path) -> None:
        text = (folder / path).read_text()
        assert old in text
        (folder / path).write_text(text.replace(old, new))

    return change


def made(path: str) -> Damage:
    """Return what makes a directory."""
    return lambda folder: (folder / path).mkdir()


def copied(source: str, target: str) -> Damage:
    """Return what copies a directory."""
    return lambda folder: shutil.copytree(folder / source, folder / target)


def removed(*patterns: str) -> Damage:
    """Return what removes files and directories."""

    def remove(folder: Path) -> None:
        found = [path for pattern in patterns for path in folder.glob(pattern)]
        assert found
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return remove


def _line(path: str, start: str) -> Damage:
    """Return what removes a line of a file, by its beginning."""

    def remove(folder: Path) -> None:
        lines = (folder / path).read_text().splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith(start)]
        assert len(kept) < len(lines)
        (folder / path).write_text("".join(kept))

    return remove


def _moved(folder: Path) -> None:
    (folder / _ORDERS).rename(folder / "d1/orders-0")


def _two_futures(folder: Path) -> None:
    for number, place in enumerate(("d1", "d2")):
        shutil.copytree(folder / _ORDERS, folder / place / f"orders-0.{number:032x}-future")


def _abandoned_future(folder: Path) -> None:
    (folder / _ORDERS).rename(folder / f"d2/orders-0.{7:032x}-future")


def _id_of_other_topic(folder: Path) -> None:
    shutil.copy(folder / "d2/comp-0/partition.metadata", folder / _ORDERS)


def _short_retention(folder: Path) -> None:
    with (folder / "server.properties").open("a") as file:
        file.write("log.retention.ms=1\n")


META, ID = "d2/meta.properties", f"{_ORDERS}/partition.metadata"
DAMAGES: dict[str, Damage] = {
    "meta-empty": written(META, ""),
    "meta-version-0": changed(META, "version=1", "version=0"),
    "meta-version-7": changed(META, "version=1", "version=7"),
    "meta-without-node": _line(META, "node.id"),
    "meta-without-cluster": _line(META, "cluster.id"),
    "meta-of-node-5": changed(META, "node.id=1", "node.id=5"),
    "no-dash": made("d2/backup"),
    "no-number": made("d2/orders-old"),
    "number-missing": made("d2/orders-"),
    "marked-without-id": made("d2/orders-9-delete"),
    "marked-for-deletion": copied(_ORDERS, f"d2/orders-0.{7:032x}-delete"),
    "stray-of-before": copied(_ORDERS, f"d2/orders-0.{7:032x}-stray"),
    "file-in-log-dir": written("d2/lost+found", "a file"),
    "topic-id-garbage": written(ID, "garbage"),
    "topic-id-one-line": written(ID, "version: 0\n"),
    "topic-id-too-short": written(ID, "version: 0\ntopic_id: x\n"),
    "topic-id-zero": written(ID, f"version: 0\ntopic_id: {'A' * 22}\n"),
    "topic-id-of-another": _id_of_other_topic,
    "replication-version-7": changed("d2/replication-offset-checkpoint", "0\n", "7\n"),
    "cleaner-garbage": written("d2/cleaner-offset-checkpoint", "garbage\n"),
    "checkpoint-empty": written("d2/log-start-offset-checkpoint", ""),
    "checkpoint-version-only": written("d2/log-start-offset-checkpoint", "0\n"),
    "checkpoint-blank-line": written("d2/log-start-offset-checkpoint", "0\n0\n\n"),
    "checkpoint-count": written("d2/log-start-offset-checkpoint", "0\n3\norders 0 0\n"),
    "snapshot-name": written(f"{_ORDERS}/x.snapshot", ""),
    "cleaned-name": written(f"{_ORDERS}/x.log.cleaned", ""),
    "swap-name": written(f"{_ORDERS}/x.log.swap", ""),
    "deleted-name": written(f"{_ORDERS}/x.log.deleted", ""),
    "leader-epochs-garbage": written(f"{_ORDERS}/leader-epoch-checkpoint", "garbage\n"),
    "quorum-state-garbage": written("d1/__cluster_metadata-0/quorum-state", "{}"),
    "quorum-state-empty": written("d1/__cluster_metadata-0/quorum-state", ""),
    "first-segment-missing": removed(f"{_ORDERS}/{_FIRST}.*"),
    "partition-removed": removed(_ORDERS),
    "partition-moved": _moved,
    "partition-beyond": copied(_ORDERS, "d2/orders-7"),
    "two-futures": _two_futures,
    "abandoned-future": _abandoned_future,
    "partition-is-a-file": lambda folder: (
        removed(_ORDERS)(folder),
        written(_ORDERS, "a file")(folder),
    ),
    "retention-of-1-ms": _short_retention,
    "checkpoints-missing": removed("d2/*-checkpoint"),
}
