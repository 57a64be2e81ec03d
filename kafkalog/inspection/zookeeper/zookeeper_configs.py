"""The settings of topics and brokers that Kafka keeps in ZooKeeper, below /config.

Rule: docs/format.md F169.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kafkalog.coordination.zookeeper.kafka_directories import CLUSTER_ZNODES
from kafkalog.inspection.zookeeper.cluster_trees import cluster_tree
from kafkalog.storage.log_dir.topic_configs import ZOOKEEPER, RecordedConfigs

_DEFAULT = "<default>"


def zookeeper_configs(
    paths: Sequence[str], cluster_ids: Collection[str | None], chroot: str | None = None
) -> RecordedConfigs | None:
    """Return what the data directories say of the cluster with one of the ids, None without a data
    directory. Raises as `cluster_tree` does."""
    found = cluster_tree(paths, cluster_ids, chroot)
    if found is None:
        return None
    topics: dict[str, Mapping[str, str]] = {}
    brokers: dict[str, Mapping[str, str]] = {}
    for row in found.rows(CLUSTER_ZNODES, "/config"):
        kind, _, name = str(row.get("entity_path")).partition("/")
        settings = row.get("settings")
        if isinstance(settings, Mapping) and kind in ("topics", "brokers"):
            own = topics if kind == "topics" else brokers
            own["" if name == _DEFAULT else name] = settings
    return RecordedConfigs(topics, brokers, ZOOKEEPER)
