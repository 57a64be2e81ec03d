"""The options of `format("zookeeper")`. Reference: docs/zookeeper.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from kafkalog.errors import ConflictingOptionsError, OptionError
from kafkalog.storage.files.file_access import FileAccess
from kafkalog.views.options.option_values import OptionValues
from kafkalog.views.options.options import Mode


class ZookeeperView(Enum):
    """What a row is."""

    ZNODES = "znodes"
    ZNODE_HISTORY = "znode_history"
    ZNODE_SIZES = "znode_sizes"
    SESSIONS = "sessions"
    FAULTS = "faults"
    BROKER_REGISTRY = "broker_registry"
    TOPIC_REGISTRY = "topic_registry"
    PARTITION_STATES = "partition_states"
    CONSUMER_REGISTRY = "consumer_registry"
    CONSUMER_OFFSETS = "consumer_offsets"
    PARTITION_OWNERS = "partition_owners"
    CLUSTER_ZNODES = "cluster_znodes"
    CLUSTERS = "clusters"
    OFFSET_COMMITS = "offset_commits"
    CLUSTER_TOPICS = "cluster_topics"
    CLUSTER_PARTITIONS = "cluster_partitions"
    CLUSTER_CONFIGS = "cluster_configs"
    CLUSTER_ACLS = "cluster_acls"


# The tables of views, by whose names Arrow and SQL know them.
ZOOKEEPER_VIEW_TABLES = {
    **{view: view.value for view in ZookeeperView},
    ZookeeperView.SESSIONS: "zookeeper_sessions",
    ZookeeperView.FAULTS: "zookeeper_faults",
}


@dataclass(frozen=True, slots=True)
class ZookeeperOptions:
    """All options of a read of ZooKeeper's files, parsed and checked. `subtree` is the path of
    option `znode` as in the files, empty for all."""

    paths: tuple[str, ...]
    view: ZookeeperView
    columns: tuple[str, ...] | None
    mode: Mode
    zxid: int | None = None
    time_ms: int | None = None
    subtree: bytes = b""
    without_effect: tuple[str, ...] = ()
    file_access: FileAccess = field(default_factory=FileAccess)


_PATHS_ALLOWED = (
    "a ZooKeeper server's dataDir, its folder version-2, dataDir and dataLogDir together, a "
    "snapshot or log, or a glob of these"
)
_ZXID, _TIME = "zxidAsOf", "timestampAsOf"
_ZNODE = "znode"
ZOOKEEPER_OPTION_NAMES = ("path", "paths", "view", "columns", "mode", _ZXID, _TIME, _ZNODE)
# What a KRaft cluster's metadata has views of too.
STATE_VIEWS = (
    *(ZookeeperView.CLUSTER_TOPICS, ZookeeperView.CLUSTER_PARTITIONS),
    *(ZookeeperView.CLUSTER_CONFIGS, ZookeeperView.CLUSTER_ACLS),
)
# These views always read all files.
_WHOLE_VIEWS = (ZookeeperView.FAULTS,)
_WITHOUT_PATHS = (
    *(ZookeeperView.FAULTS, ZookeeperView.SESSIONS, ZookeeperView.CLUSTERS),
    *STATE_VIEWS,
)


def read_zookeeper_options(given: Mapping[str, str]) -> ZookeeperOptions:
    """Parse and check the options of a read. Raises OptionError naming the option."""
    options = OptionValues(given, ZOOKEEPER_OPTION_NAMES)
    if options.text(_ZXID) is not None and options.text(_TIME) is not None:
        raise ConflictingOptionsError(_TIME, _ZXID)
    view = options.choice("view", default=ZookeeperView.ZNODES)
    unused = [*options.unused]
    if view in _WHOLE_VIEWS:
        unused += [name for name in (_ZXID, _TIME) if options.text(name) is not None]
    if view in _WITHOUT_PATHS and options.text(_ZNODE) is not None:
        unused.append(_ZNODE)
    is_timed = options.text(_TIME) is not None
    return ZookeeperOptions(
        paths=options.paths(_PATHS_ALLOWED),
        view=view,
        columns=options.listed("columns"),
        mode=options.choice("mode", default=Mode.FAILFAST),
        zxid=_zxid(options),
        time_ms=options.number(_TIME, default=1) if is_timed else None,
        subtree=_subtree(options),
        without_effect=tuple(sorted(unused)),
        file_access=FileAccess(storage=options.storage()),
    )


def _zxid(options: OptionValues) -> int | None:
    text = options.text(_ZXID)
    if text is None:
        return None
    match = re.fullmatch(
        r"(?P<hex>0x[0-9a-f]{1,16})|(?P<decimal>[0-9]{1,19})", text.strip().lower()
    )
    value = -1 if match is None else int(text.strip(), 16 if match["hex"] else 10)
    if not 0 <= value < 1 << 63:
        raise OptionError(_ZXID, text, "a zxid such as 4294967300 or 0x100000004")
    return value


def _subtree(options: OptionValues) -> bytes:
    path = options.text(_ZNODE)
    if path is None or path == "/":
        return b""
    if not path.startswith("/") or path.endswith("/"):
        raise OptionError(_ZNODE, path, "the path of a znode such as /consumers")
    return path.encode()
