"""Kafka's own Admin client, in a JVM of its own, called by py4j: one process for many requests."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import JavaGateway

from tests.support.broker.cluster.java_gateway import java_gateway

Answers = dict[str, list[tuple[Any, ...]]]
_SETTLE_SECONDS = 60

_NODE = re.compile(r"\(id: (-?\d+) ")
_PARTITION_FIELD = re.compile(r", (?:leader|replicas|isr|elr|lastKnownElr)=")
_CONFIG = re.compile(r"ConfigEntry\(name=(.*?), value=(.*?), source=(\w+), isSensitive")
_ACL = re.compile(
    r"resourceType=(\w+), name=(.*?), patternType=(\w+)\), entry=\(principal=(.*?), host=(.*?), "
    r"operation=(\w+), permissionType=(\w+)\)"
)
# Where a value comes from that was set for a resource itself.
_OWN = {
    "TOPIC": "DYNAMIC_TOPIC_CONFIG",
    "BROKER": "DYNAMIC_BROKER_CONFIG",
    "CLIENT_METRICS": "DYNAMIC_CLIENT_METRICS_CONFIG",
    "GROUP": "DYNAMIC_GROUP_CONFIG",
}
_OF_ALL_BROKERS = "DYNAMIC_DEFAULT_BROKER_CONFIG"


class JavaAdmin:
    """The Admin client, and what it says in the words that `kafkalog metadata` has."""

    def __init__(self, gateway: JavaGateway, bootstrap: str) -> None:
        self.java = gateway.jvm
        self.admin = self.java.org.apache.kafka.clients.admin
        self.common = self.java.org.apache.kafka.common
        settings = {"bootstrap.servers": bootstrap, "default.api.timeout.ms": "60000"}
        self.client = self.admin.AdminClient.create(settings)

    def answers(self) -> Answers:
        """What the client says of the cluster once it has said it twice."""
        deadline = time.monotonic() + _SETTLE_SECONDS
        before, found = Answers(), self._answers()
        while before != found:
            assert time.monotonic() < deadline
            time.sleep(0.5)
            before, found = found, self._answers()
        return found

    def _answers(self) -> Answers:
        found = {
            "topic": self._topics(),
            "config": self._configs(),
            "acl": self._acls(),
            "quota": self._quotas(),
            "feature": self._features(),
            "broker": self._brokers(),
            "voter": self._voters(),
        }
        found["partition"] = [(name, *each) for name, _, *some in found["topic"] for each in some]
        found["topic"] = [each[:2] for each in found["topic"]]
        return {kind: sorted(rows) for kind, rows in found.items()}

    def end_offset(self) -> int:
        """Where the leader's log of the metadata ends."""
        quorum = self.client.describeMetadataQuorum().quorumInfo().get()
        leader = quorum.leaderId()
        return max(each.logEndOffset() for each in quorum.voters() if each.replicaId() == leader)

    def _topics(self) -> list[tuple[Any, ...]]:
        options = self.admin.ListTopicsOptions().listInternal(True)
        names = self.client.listTopics(options).names().get()
        described = self.client.describeTopics(names).allTopicNames().get()
        return [
            (name, topic.topicId().toString(), *_partitions(topic.toString()))
            for name, topic in described.items()
        ]

    def _configs(self) -> list[tuple[Any, ...]]:
        kinds = self.common.config.ConfigResource.Type
        # Only a broker itself says how it is configured.
        running = [str(broker) for broker, is_fenced, *_ in self._brokers() if not is_fenced]
        names = [("BROKER", ""), *(("BROKER", each) for each in running)]
        names += [("TOPIC", each) for each in self.client.listTopics().names().get()]
        for kind in ("CLIENT_METRICS", "GROUP"):
            wanted = self.java.java.util.HashSet()
            wanted.add(getattr(kinds, kind))
            listed = self.client.listConfigResources(
                wanted, self.admin.ListConfigResourcesOptions()
            )
            names += [(kind, each.name()) for each in self._each(listed.all().get())]
        resources = [self.resource(kind, name) for kind, name in names]
        return [
            (kind.lower().replace("_", "-"), resource.name(), name, value)
            for resource, config in self.client.describeConfigs(resources).all().get().items()
            for kind in [resource.type().name()]
            for name, value, source in _CONFIG.findall(config.toString())
            if source == (_OWN[kind] if resource.name() else _OF_ALL_BROKERS)
        ]

    def _each(self, collection: Any) -> Any:
        """The elements of a Java collection of any class."""
        return self.java.java.util.ArrayList(collection)

    def resource(self, kind: str, name: str) -> Any:
        """What has configs, such as a TOPIC."""
        resource = self.common.config.ConfigResource
        return resource(getattr(resource.Type, kind), name)

    def _acls(self) -> list[tuple[Any, ...]]:
        found = self.client.describeAcls(self.common.acl.AclBindingFilter.ANY).values().get()
        return [
            (
                *(principal, permission.lower(), _camel(operation)),
                *(resource.lower().replace("_", "-"), name, pattern.lower(), host),
            )
            for text in (each.toString() for each in found)
            for resource, name, pattern, principal, host, operation, permission in [
                _matched(_ACL, text)
            ]
        ]

    def _quotas(self) -> list[tuple[Any, ...]]:
        everything = self.common.quota.ClientQuotaFilter.all()
        found = self.client.describeClientQuotas(everything).entities().get()
        return [
            (
                ", ".join(
                    f"{kind}={'<default>' if name is None else name}"
                    for kind, name in sorted(entity.entries().items())
                ),
                *each,
            )
            for entity, values in found.items()
            for each in values.items()
        ]

    def _features(self) -> list[tuple[Any, ...]]:
        found = self.client.describeFeatures().featureMetadata().get().finalizedFeatures()
        return [(name, levels.maxVersionLevel()) for name, levels in found.items()]

    def _brokers(self) -> list[tuple[Any, ...]]:
        options = self.admin.DescribeClusterOptions().includeFencedBrokers(True)
        nodes = self.client.describeCluster(options).nodes().get()
        return [
            (node.id(), node.isFenced(), node.host(), node.port()) for node in self._each(nodes)
        ]

    def _voters(self) -> list[tuple[Any, ...]]:
        voters = self.client.describeMetadataQuorum().quorumInfo().get().voters()
        return [(each.replicaId(), each.replicaDirectoryId().toString()) for each in voters]


def _partitions(text: str) -> Iterator[tuple[Any, ...]]:
    """Yield number, leader, replicas, ISR, eligible leader replicas and last known ones of each
    partition of a topic's description."""
    described = text.rpartition(", authorizedOperations=")[0]
    for partition in described.split("(partition=")[1:]:
        number, *lists = _PARTITION_FIELD.split(partition)
        leader, *others = ([int(each) for each in _NODE.findall(nodes)] for nodes in lists)
        yield (int(number), *(leader or [-1]), *others)


def _matched(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    match = pattern.search(text)
    assert match is not None, text
    return match.groups()


def _camel(name: str) -> str:
    return "".join(map(str.capitalize, name.split("_")))


@contextmanager
def java_admin(bootstrap: str) -> Iterator[JavaAdmin]:
    """The Admin client of the brokers' own release; its JVM has ended afterwards."""
    with java_gateway("broker") as gateway:
        yield JavaAdmin(gateway, bootstrap)
