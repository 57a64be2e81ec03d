"""ZooKeeper's own files: snapshots and transaction logs, and the tree that they replay to; and the
algorithms by which Kafka's old consumers divide partitions among themselves there.

The names in `__all__` are public; they are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kafkalog.arguments import with_known_arguments

if TYPE_CHECKING:
    from kafkalog.coordination.zookeeper.partition_assignment import (
        BrokerPartition,
        ConsumedPartition,
        ThreadId,
    )
    from kafkalog.coordination.zookeeper.rebalancing import (
        GroupRegistry,
        Rebalance,
        rebalance,
        rebalanced_owners,
    )
    from kafkalog.coordination.zookeeper.registration import registration_steps
    from kafkalog.coordination.zookeeper.topic_filters import Subscription, SubscriptionPattern

__all__ = [
    "BrokerPartition",
    "ConsumedPartition",
    "GroupRegistry",
    "Rebalance",
    "Subscription",
    "SubscriptionPattern",
    "ThreadId",
    "rebalance",
    "rebalanced_owners",
    "registration_steps",
]

_FOLDER = "kafkalog.coordination.zookeeper"
# Modules there, and the public names that each defines.
_PUBLIC_NAMES = {
    "partition_assignment": ("BrokerPartition", "ConsumedPartition", "ThreadId"),
    "rebalancing": ("GroupRegistry", "Rebalance", "rebalance", "rebalanced_owners"),
    "registration": ("registration_steps",),
    "topic_filters": ("Subscription", "SubscriptionPattern"),
}
_MODULES = {name: module for module, names in _PUBLIC_NAMES.items() for name in names}

if not TYPE_CHECKING:  # mypy would take any name for one that is there

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{_FOLDER}.{_MODULES[name]}"), name)
        globals()[name] = with_known_arguments(found, __name__)
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
