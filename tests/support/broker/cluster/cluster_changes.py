"""Changes of every kind to a cluster's metadata, round by round, by Kafka's own Admin client."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import Producer

from tests.support.broker.cluster.java_admin import JavaAdmin
from tests.support.broker.cluster.kraft_cluster import KraftCluster
from tests.support.serve.raw_client import RawClient

ROUNDS = 10
# Of most kinds that many changes in each round.
EACH = 24
BROKERS = (11, 12)
# The broker that is away at the end of this round, and back in the next.
AWAY, AWAY_AFTER = 12, 5
STAYS = 11
_WAIT_SECONDS = 60
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def users_of(address: str) -> list[tuple[str, str, int]]:
    """User, mechanism and iterations of each SCRAM credential, as one broker answers the Admin
    client's request: that asks any broker, and one that has started again can have lost some."""
    client = RawClient(address)
    answer = client.ask("DescribeUserScramCredentials", users=None)
    client.socket.close()
    return sorted(
        (each["user"], _MECHANISMS[info["mechanism"]], info["iterations"])
        for each in answer["results"]
        for info in each["credentialInfos"]
    )


class ClusterChanges:
    """What is there, and the next round of changes to it."""

    def __init__(self, cluster: KraftCluster, admin: JavaAdmin) -> None:
        self._cluster = cluster
        self._admin = admin
        self._client = admin.client
        self._topics: dict[str, int] = {}

    def make(self, number: int) -> None:
        """Make the changes of a round; all brokers run."""
        if number == AWAY_AFTER + 1:
            self._cluster.start(AWAY)
        self._create_topics(number)
        self._delete_topics(number)
        self._add_partitions(number)
        self._alter_configs(number)
        self._alter_acls(number)
        self._alter_users(number)
        self._alter_quotas(number)
        self._alter_features(number)
        self._move_replicas(number)
        self._get_producer_ids(number)
        if number == AWAY_AFTER:
            self._cluster.stop(AWAY)

    def _create_topics(self, number: int) -> None:
        new = []
        for each in range(EACH):
            name = f"topic-{number}.{each}"
            self._topics[name] = 1 + each % 3
            replicas = [[11], [12], [11, 12], [12, 11]][each % 4]
            topic = self._admin.admin.NewTopic(
                name, dict.fromkeys(range(self._topics[name]), replicas)
            )
            new.append(topic.configs({"retention.ms": str(1000 + each)} if each % 2 else {}))
        self._client.createTopics(new).all().get()

    def _delete_topics(self, number: int) -> None:
        # Half of what the round before has made, those with configs of their own among them.
        gone = [name for name in self._topics if name.startswith(f"topic-{number - 1}.")][::2]
        if gone:
            self._client.deleteTopics(gone).all().get()
        for name in gone:
            del self._topics[name]

    def _add_partitions(self, number: int) -> None:
        grown: dict[str, Any] = {}
        for name in [*self._topics][-EACH::4]:
            self._topics[name] += 2
            grown[name] = self._admin.admin.NewPartitions.increaseTo(self._topics[name])
        self._client.createPartitions(grown).all().get()

    def _alter_configs(self, number: int) -> None:
        topics = [*self._topics][-EACH:]
        changes = {
            self._admin.resource("TOPIC", name): [
                self._set("cleanup.policy", "compact"),
                self._set("min.insync.replicas", str(1 + each % 2)),
                self._set("retention.ms", None if each % 3 else "77"),
            ]
            for each, name in enumerate(topics)
        }
        changes[self._admin.resource("BROKER", "")] = [
            self._set("message.max.bytes", str(2_000_000 + number)),
            self._set("log.cleaner.threads", "1" if number % 2 else None),
        ]
        for broker in BROKERS:
            changes[self._admin.resource("BROKER", str(broker))] = [
                self._set("log.retention.ms", str(10**9 + number + broker))
            ]
        changes[self._admin.resource("CLIENT_METRICS", f"metrics-{number}")] = [
            self._set("interval.ms", "60000")
        ]
        changes[self._admin.resource("GROUP", f"group-{number}")] = [
            self._set("consumer.session.timeout.ms", "50000")
        ]
        self._client.incrementalAlterConfigs(changes).all().get()

    def _set(self, name: str, value: str | None) -> Any:
        """Set a config; back to its default if there is no value."""
        operation = self._admin.admin.AlterConfigOp
        kind = operation.OpType.DELETE if value is None else operation.OpType.SET
        return operation(self._admin.admin.ConfigEntry(name, value), kind)

    def _alter_acls(self, number: int) -> None:
        acl, resources = self._admin.common.acl, self._admin.common.resource
        made = []
        for each in range(EACH):
            pattern = resources.ResourcePattern(
                [
                    resources.ResourceType.TOPIC,
                    resources.ResourceType.GROUP,
                    resources.ResourceType.TRANSACTIONAL_ID,
                ][each % 3],
                f"name-{number}",
                resources.PatternType.PREFIXED if each % 2 else resources.PatternType.LITERAL,
            )
            permission = acl.AclPermissionType.ALLOW if each % 5 else acl.AclPermissionType.DENY
            operation = acl.AclOperation.DESCRIBE if each % 4 else acl.AclOperation.ALL
            entry = acl.AccessControlEntry(f"User:{each}", "*", operation, permission)
            made.append(acl.AclBinding(pattern, entry))
        self._client.createAcls(made).all().get()
        self._client.deleteAcls([each.toFilter() for each in made[::4]]).all().get()

    def _alter_users(self, number: int) -> None:
        if not number:
            # Users that stay: where a broker of 4.4.0 takes the removal of a mechanism's last user
            # and new ones together, it loses the new ones (`ScramDelta.apply` drops the map that it
            # goes on to fill).
            self._upsert(["stays-0", "stays-1"])
            self._wait(lambda: len(users_of(self._cluster.nodes[STAYS].address)) == 2)
        names = [f"user-{number}-{each}" for each in range(EACH)]
        self._upsert(names)
        mechanisms = self._mechanisms()
        gone = [
            self._admin.admin.UserScramCredentialDeletion(name, mechanisms[each % 2])
            for each, name in enumerate(names)
            if each % 4 == 0
        ]
        self._client.alterUserScramCredentials(gone).all().get()

    def _upsert(self, names: Sequence[str]) -> None:
        admin, mechanisms = self._admin.admin, self._mechanisms()
        self._client.alterUserScramCredentials(
            [
                admin.UserScramCredentialUpsertion(
                    name, admin.ScramCredentialInfo(mechanisms[each % 2], 4096 + each), "secret"
                )
                for each, name in enumerate(names)
            ]
        ).all().get()

    def _mechanisms(self) -> tuple[Any, Any]:
        mechanism = self._admin.admin.ScramMechanism
        return mechanism.SCRAM_SHA_256, mechanism.SCRAM_SHA_512

    def _alter_quotas(self, number: int) -> None:
        entities: list[dict[str, str | None]] = [
            {"user": f"user-{number}-{each}"} for each in range(EACH)
        ]
        for each in range(1, EACH, 2):
            entities[each]["client-id"] = f"client-{each}"
        quotas = [
            self._quota(entity, "consumer_byte_rate", 1000.0 * (each + 1))
            for each, entity in enumerate(entities)
        ]
        quotas.append(self._quota({"user": None}, "producer_byte_rate", 1000.0 + number))
        quotas.append(self._quota({"user": "user"}, "request_percentage", 12.5 + number))
        quotas.append(self._quota({"ip": f"10.0.0.{number}"}, "connection_creation_rate", 5.0))
        self._client.alterClientQuotas(quotas).all().get()
        removed = [self._quota(entity, "consumer_byte_rate", None) for entity in entities[::4]]
        self._client.alterClientQuotas(removed).all().get()

    def _quota(self, entity: dict[str, str | None], name: str, value: float | None) -> Any:
        quota = self._admin.common.quota
        return quota.ClientQuotaAlteration(
            quota.ClientQuotaEntity(entity), [quota.ClientQuotaAlteration.Op(name, value)]
        )

    def _alter_features(self, number: int) -> None:
        # Kafka removes eligible leader replicas with the feature.
        kinds = self._admin.admin.FeatureUpdate.UpgradeType
        kind = kinds.SAFE_DOWNGRADE if number % 2 else kinds.UPGRADE
        update = self._admin.admin.FeatureUpdate(0 if number % 2 else 1, kind)
        options = self._admin.admin.UpdateFeaturesOptions()
        updates = {"eligible.leader.replicas.version": update}
        self._client.updateFeatures(updates, options).all().get()

    def _move_replicas(self, number: int) -> None:
        names = [*self._topics][-EACH:]
        places = [self._admin.common.TopicPartition(name, 0) for name in names]
        new = self._admin.admin.NewPartitionReassignment
        optional = self._admin.java.java.util.Optional
        moves = {
            place: optional.of(new([12, 11] if each % 2 else [11]))
            for each, place in enumerate(places)
        }
        self._client.alterPartitionReassignments(moves).all().get()
        self._wait(lambda: not self._client.listPartitionReassignments().reassignments().get())
        preferred = self._admin.common.ElectionType.PREFERRED
        self._client.electLeaders(preferred, {*places}).partitions().get()

    def _wait(self, is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _WAIT_SECONDS
        while not is_done():
            assert time.monotonic() < deadline
            time.sleep(0.2)
        # The other broker comes a moment later.
        time.sleep(0.5)

    def _get_producer_ids(self, number: int) -> None:
        settings = {"bootstrap.servers": self._cluster.bootstrap, "enable.idempotence": True}
        producer = Producer(settings)
        producer.produce(f"topic-{number}.0", b"record", partition=0)
        assert producer.flush(60) == 0
