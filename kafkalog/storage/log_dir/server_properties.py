"""What `server.properties` says of a node: its roles, its id, its directories, its quorum.

Rule: docs/format.md F960.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from glob import glob

from kafkalog.format.side_files.properties import read_properties

_VOTER = re.compile(r"\s*([0-9]+)@")
_DEFAULT_LOG_DIR = "/tmp/kafka-logs"
# Settings that name classes.
_LISTS_OF_CLASSES = (
    *("metric.reporters", "kafka.metrics.reporters", "group.consumer.assignors"),
    "group.share.assignors",
)
_CLASS_ENDINGS = (".class", ".class.name")
_OF_JAVA = ("java.", "javax.", "com.sun.")
_TIER = "remote.log.storage.manager.class"


@dataclass(frozen=True, slots=True)
class ServerProperties:
    """The file at `path`, and its settings by name."""

    path: str
    values: Mapping[str, str]

    @classmethod
    def of(cls, path: str, text: str) -> ServerProperties:
        """Return the settings of a file with this text."""
        return cls(path, read_properties(text).values)

    @property
    def names_a_node(self) -> bool:
        """Whether the file is a node's, not only some settings of topics."""
        return bool(self.roles) or self.node_id is not None or self.has_zookeeper

    @property
    def has_zookeeper(self) -> bool:
        """Whether the file says where ZooKeeper is."""
        return "zookeeper.connect" in self.values

    @property
    def roles(self) -> frozenset[str]:
        """What `process.roles` names; empty for a broker with ZooKeeper."""
        return frozenset(_words(self.values.get("process.roles", "")))

    @property
    def node_id(self) -> int | None:
        """The node's id, None where the file has none."""
        text = self.values.get("node.id", self.values.get("broker.id", "")).strip()
        return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None

    @property
    def log_dirs(self) -> list[str]:
        """The log directories in their order; relative ones begin where the file is."""
        named = self.values.get("log.dirs", self.values.get("log.dir", _DEFAULT_LOG_DIR))
        return [self._absolute(each) for each in _words(named)]

    @property
    def metadata_dir(self) -> str:
        """The directory of `__cluster_metadata`: the first of all where nothing names it."""
        named = self.values.get("metadata.log.dir", "").strip()
        return self._absolute(named) if named else next(iter(self.log_dirs), "")

    @property
    def spellings(self) -> dict[str, list[str]]:
        """How the settings write each log directory, by its path without links."""
        named = _words(self.values.get("log.dirs", self.values.get("log.dir", _DEFAULT_LOG_DIR)))
        found: dict[str, list[str]] = {}
        for each in dict.fromkeys([*named, self.values.get("metadata.log.dir", "").strip()]):
            if each:
                found.setdefault(os.path.realpath(self._absolute(each)), []).append(each)
        return found

    @property
    def voters(self) -> frozenset[int]:
        """The ids in `controller.quorum.voters`."""
        found = map(_VOTER.match, self.values.get("controller.quorum.voters", "").split(","))
        return frozenset(int(match[1]) for match in found if match)

    @property
    def bootstrap_controllers(self) -> int:
        """How many addresses `controller.quorum.bootstrap.servers` has."""
        return len(_words(self.values.get("controller.quorum.bootstrap.servers", "")))

    @property
    def plugin_without_path(self) -> str | None:
        """The class of tiered storage, empty if none is set, that has no class path of its own;
        None without one, and where tiered storage is off."""
        is_on = self.values.get("remote.log.storage.system.enable", "").strip().lower() == "true"
        name = self.values.get(f"{_TIER}.name", "").strip()
        paths = self.values.get(f"{_TIER}.path", "").split(os.pathsep)
        has_path = name and any(
            glob(self._absolute(each.strip())) for each in paths if each.strip()
        )
        return name if is_on and not has_path else None

    @property
    def classes(self) -> dict[str, list[str]]:
        """The classes that a node loads at its start, but Java's own, by the names of the settings;
        without those of tiered storage."""
        found = {}
        for name, value in self.values.items():
            if name in _LISTS_OF_CLASSES or (name.endswith(_CLASS_ENDINGS) and _TIER not in name):
                classes = [each for each in _words(value) if "." in each]
                own = [each for each in classes if not each.startswith(_OF_JAVA)]
                if own:
                    found[name] = own
        return found

    def _absolute(self, path: str) -> str:
        return os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(self.path)), path))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
