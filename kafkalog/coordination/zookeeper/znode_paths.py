"""Paths in the notation of Kafka's documents, and the roots of clusters in an ensemble's tree.

Rules: docs/zookeeper.md F430 and F431.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

# What identifies a cluster's root, and everything that can be at its root.
_ROOT_MARKS = ("/brokers/ids", "/brokers/topics", "/consumers")
_TOP_LEVEL = frozenset(
    (
        "admin",
        "brokers",
        "cluster",
        "config",
        "consumers",
        "controller",
        "controller_epoch",
        "delegation_token",
        "feature",
        "isr_change_notification",
        "kafka-acl",
        "kafka-acl-changes",
        "kafka-acl-extended",
        "kafka-acl-extended-changes",
        "latest_producer_id_block",
        "log_dir_event_notification",
        "migration",
    )
)


class PathTemplate:
    """A path such as `/brokers/topics/[topic]/partitions/[partition]/state`: `[xyz]` stands for any
    one name, and a last `...` for one name or several."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = text.split("/")
        # What most paths differ in already.
        self._front = text.partition("[")[0].removesuffix("...")
        self._slashes = None if text.endswith("...") else text.count("/")

    def names(self, path: str) -> dict[str, str] | None:
        """Return the values of each `[xyz]` in a path, None if the path does not match; that of
        `...` under "", with its slashes."""
        if not path.startswith(self._front) or self._slashes not in (None, path.count("/")):
            return None
        given = path.split("/")
        parts = self._parts
        if parts[-1] == "..." and len(given) >= len(parts):
            rest = len(parts) - 1
            given = [*given[:rest], "/".join(given[rest:])]
        if len(given) != len(parts):
            return None
        names: dict[str, str] = {}
        for part, name in zip(parts, given, strict=True):
            if part == "...":
                names[""] = name
            elif part.startswith("["):
                names[part[1:-1]] = name
            elif part != name:
                return None
        return names


class ChrootPath(NamedTuple):
    """A path taken apart: the cluster's root, "" for the ensemble's own, and the path below it."""

    chroot: str
    path: str


def is_root_mark(path: str) -> bool:
    """Return whether a path is one of those that a cluster's root is known by."""
    return path.endswith(_ROOT_MARKS)


def cluster_roots(paths: Iterable[str]) -> list[str]:
    """Return the roots of the clusters among the paths of a tree, sorted; "" is the ensemble's own.

    A topic or a group may be called `consumers`: a directory inside a cluster is not a root.
    """
    candidates = {
        path[: -len(mark)] for path in paths for mark in _ROOT_MARKS if path.endswith(mark)
    }
    roots: list[str] = []
    for candidate in sorted(candidates, key=lambda root: (root.count("/"), root)):
        if candidate.split("/")[1:2] != ["zookeeper"] and not _is_inside(candidate, roots):
            roots.append(candidate)
    return sorted(roots)


def _is_inside(path: str, roots: Iterable[str]) -> bool:
    inside = (path[len(root) + 1 :] for root in roots if path.startswith(f"{root}/"))
    return any(rest.split("/")[0] in _TOP_LEVEL for rest in inside)


def below_root(path: str, roots: Iterable[str]) -> ChrootPath | None:
    """Return the cluster that a path belongs to, of `roots`; None for one that belongs to none."""
    for root in roots:
        if path.startswith(f"{root}/") and path[len(root) + 1 :].split("/")[0] in _TOP_LEVEL:
            return ChrootPath(root, path[len(root) :])
    return None
