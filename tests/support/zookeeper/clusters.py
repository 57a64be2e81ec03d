"""Clusters made of a few znodes, for tests of audits."""

from collections.abc import Iterable, Mapping

from kafkalog.coordination.zookeeper.found_cluster import FoundCluster, FoundZnode, add_znode

SESSION = 0x1000
Tree = Mapping[str, str | None]


def topic(partitions: int) -> str:
    """The data of a topic with so many partitions, all on broker 0."""
    listed = ",".join(f'"{number}":[0]' for number in range(partitions))
    return f'{{"version":1,"partitions":{{{listed}}}}}'


def consumer(*topics: str, pattern: str = "static") -> str:
    """The data of a consumer with one stream for each topic, or expression."""
    listed = ",".join(f'"{name}":1' for name in topics)
    return f'{{"version":1,"subscription":{{{listed}}},"pattern":"{pattern}","timestamp":"1"}}'


def found_cluster(znodes: Iterable[FoundZnode]) -> FoundCluster:
    """Return the cluster that these znodes describe, in whatever order they come."""
    cluster = FoundCluster()
    for znode in znodes:
        add_znode(cluster, znode)
    return cluster


def cluster_of(tree: Tree, session: int = SESSION) -> FoundCluster:
    """The cluster of a tree of paths and data; brokers, consumers and owners are of one session."""
    return found_cluster(
        FoundZnode(
            path,
            None if data is None else data.encode(),
            session if "/ids/" in path or "/owners/" in path else 0,
            1_000,
            2_000,
        )
        for path, data in tree.items()
    )
