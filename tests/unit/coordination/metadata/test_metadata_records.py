"""What each record does to the image, where no real broker's file at hand has such a record.
Rules: F760 to F763."""

from typing import Any, NamedTuple

import pytest

from kafkalog.coordination.metadata.admin_commands import admin_commands
from kafkalog.coordination.metadata.cluster_rows import cluster_rows
from kafkalog.coordination.metadata.image import MetadataImage, Remark
from kafkalog.coordination.metadata.metadata_records import _EFFECTS, apply, image_of
from kafkalog.messages.catalog import control_family, topic_family
from kafkalog.messages.metadata_transactions import TRANSACTION_RECORDS

MIGRATING = "A" * 22


class Record(NamedTuple):
    name: str | None
    value: dict[str, Any] | None
    offset: int = 7
    detail: str | None = None


TOPIC = Record("TopicRecord", {"name": "orders", "topicId": "T"})
PARTITION = Record(
    "PartitionRecord",
    {
        "partitionId": 0,
        "topicId": "T",
        "replicas": [1, 2],
        "isr": [1],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": 1,
        "leaderRecoveryState": 0,
        "leaderEpoch": 4,
        "partitionEpoch": 9,
        "eligibleLeaderReplicas": [2],
        "lastKnownElr": [],
    },
)
CONFIG = {"resourceType": 2, "resourceName": "orders", "name": "retention.ms", "value": "5"}
BROKER = Record(
    "RegisterBrokerRecord",
    {
        "brokerId": 1,
        "incarnationId": "I",
        "brokerEpoch": 3,
        "endPoints": [{"name": "EXT", "host": "h", "port": 9092, "securityProtocol": 3}],
        "features": [],
        "rack": None,
        "fenced": True,
    },
)
ACL = Record(
    "AccessControlEntryRecord",
    {
        "id": "A1",
        "resourceType": 2,
        "resourceName": "ord",
        "patternType": 4,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permissionType": 3,
    },
)
QUOTA = {
    "entity": [
        {"entityType": "user", "entityName": None},
        {"entityType": "client-id", "entityName": "app"},
    ],
    "key": "producer_byte_rate",
    "value": 1024.0,
    "remove": False,
}


def partition(image: MetadataImage) -> Any:
    return image.tables["partition"]["T", 0]


def test_every_type_of_record_has_an_effect_or_ends_a_transaction() -> None:
    known = [*topic_family("__cluster_metadata").record_types.values()]
    known += [each for each in control_family().record_types.values() if each.number > 1]
    assert {each.name for each in known} == {*_EFFECTS, *TRANSACTION_RECORDS}


def test_a_change_of_a_partition_raises_its_epochs_and_keeps_what_it_does_not_name() -> None:
    # F761
    change = {"partitionId": 0, "topicId": "T", "leader": -2, "leaderRecoveryState": -1}
    image = image_of([TOPIC, PARTITION, Record("PartitionChangeRecord", {**change, "isr": [1, 2]})])
    before = partition(image)
    assert (before["leader"], before["leader_epoch"], before["partition_epoch"]) == (1, 4, 10)
    assert (before["isr"], before["directories"]) == ([1, 2], [MIGRATING] * 2)
    # The same leader again is a new epoch all the same.
    apply(image, Record("PartitionChangeRecord", {**change, "leader": 1, "leaderRecoveryState": 1}))
    after = partition(image)
    assert (after["leader"], after["leader_epoch"], after["partition_epoch"]) == (1, 5, 11)
    assert after["leader_recovery_state"] == "recovering"


def test_a_removed_topic_takes_its_partitions_and_configs_along() -> None:
    # F761
    other = {**CONFIG, "resourceName": "orders2"}
    records = [TOPIC, PARTITION, Record("ConfigRecord", CONFIG), Record("ConfigRecord", other)]
    image = image_of(records)
    changes = apply(image, Record("RemoveTopicRecord", {"topicId": "T"}))
    assert {(each.table, each.topic) for each in changes} == {
        (table, "orders") for table in ("topic", "partition", "config")
    }
    assert [*image.tables["config"]] == [("topic", "orders2", "retention.ms")]
    assert not (image.tables["topic"] or image.tables["partition"])


@pytest.mark.parametrize(("topic", "epoch"), [("orders", 10), ("", 10)])
def test_cleared_replicas_raise_the_epoch_of_partitions_that_had_some(
    topic: str, epoch: int
) -> None:
    image = image_of([TOPIC, PARTITION, Record("ClearElrRecord", {"topicName": topic})])
    row = partition(image)
    assert (row["eligible_leader_replicas"], row["partition_epoch"]) == ([], epoch)
    assert apply(image, Record("ClearElrRecord", {"topicName": topic})) == []


def test_a_broker_is_unfenced_shut_down_and_unregistered() -> None:
    image = image_of([BROKER, Record("UnfenceBrokerRecord", {"id": 1, "epoch": 3})])
    assert image.tables["broker"][1,]["is_fenced"] is False
    stopping = {"brokerId": 1, "brokerEpoch": 3, "fenced": 0, "inControlledShutdown": 1}
    apply(image, Record("BrokerRegistrationChangeRecord", stopping))
    apply(
        image, Record("BrokerRegistrationChangeRecord", {**stopping, "fenced": 1, "logDirs": ["D"]})
    )
    (row,) = cluster_rows("broker", image)
    assert row["is_fenced"] and row["is_in_controlled_shutdown"] and row["log_dirs"] == ["D"]
    assert row["end_points"] == ["EXT:SASL_SSL://h:9092"]
    apply(image, Record("UnregisterBrokerRecord", {"brokerId": 1, "brokerEpoch": 3}))
    assert image.tables["broker"] == {}


def test_what_is_set_is_removed_again() -> None:
    user = {"name": "alice", "mechanism": 2, "salt": b"s", "storedKey": b"k", "serverKey": b"v"}
    token: dict[str, Any] = {
        "tokenId": "D1",
        "owner": "User:a",
        "requester": "User:b",
        "renewers": [],
    }
    token |= {"issueTimestamp": 1, "maxTimestamp": 3, "expirationTimestamp": 2}
    image = image_of(
        [
            ACL,
            Record("UserScramCredentialRecord", {**user, "iterations": 4096}),
            Record("DelegationTokenRecord", token),
            Record("ClientQuotaRecord", QUOTA),
            Record("FeatureLevelRecord", {"name": "group.version", "featureLevel": 1}),
            Record("ConfigRecord", CONFIG),
        ]
    )
    removals = {
        "acl": Record("RemoveAccessControlEntryRecord", {"id": "A1"}),
        "user": Record("RemoveUserScramCredentialRecord", {"name": "alice", "mechanism": 2}),
        "token": Record("RemoveDelegationTokenRecord", {"tokenId": "D1"}),
        "quota": Record("ClientQuotaRecord", {**QUOTA, "remove": True}),
        "feature": Record("FeatureLevelRecord", {"name": "group.version", "featureLevel": 0}),
        "config": Record("ConfigRecord", {**CONFIG, "value": None}),
    }
    for table, record in removals.items():
        (change,) = apply(image, record)
        assert change.table == table and change.old is not None and change.new is None
    assert image.remarks == []


def test_dynamic_voters_replace_those_before() -> None:
    # F760
    levels = {"minSupportedVersion": 0, "maxSupportedVersion": 1}

    def voters(*ids: int) -> Record:
        ends = [{"name": "CONTROLLER", "host": "h", "port": 9093}]
        found = [
            {
                "voterId": each,
                "voterDirectoryId": f"D{each}",
                "endpoints": ends,
                "kRaftVersionFeature": levels,
            }
            for each in ids
        ]
        return Record("KRAFT_VOTERS", {"version": 0, "voters": found})

    image = image_of([Record("KRAFT_VERSION", {"kRaftVersion": 1}), voters(1, 2)])
    changes = apply(image, voters(2, 3))
    assert {(each.key, each.new is None) for each in changes} == {
        ((1, "D1"), True),
        ((3, "D3"), False),
    }
    assert [row["end_points"] for row in cluster_rows("voter", image)] == [
        ["CONTROLLER://h:9093"],
        ["CONTROLLER://h:9093"],
    ]
    assert image.tables["feature"]["kraft.version",] == {"level": 1}


def test_only_a_control_record_sets_the_version_of_the_quorum() -> None:
    # F763. A real 4.4.0 with static voters starts with such a record, and stays static.
    levels = [{"name": "kraft.version", "featureLevel": level} for level in (1, 0)]
    raised, removed = (Record("FeatureLevelRecord", level) for level in levels)
    image = image_of([raised])
    assert image.tables["feature"] == {}
    assert [remark.record_name for remark in image.remarks] == ["FeatureLevelRecord"]
    image = image_of([Record("KRAFT_VERSION", {"kRaftVersion": 1}), removed])
    assert image.tables["feature"] == {("kraft.version",): {"level": 1}}


def test_a_record_that_is_unknown_or_contradicts_the_image_is_a_remark() -> None:
    # F760
    image = image_of(
        [
            Record(None, None, 1, "no record of type 6 is known"),
            Record("RemoveTopicRecord", {"topicId": "T"}, 2),
            Record("FenceBrokerRecord", {"id": 5, "epoch": 1}, 3),
        ]
    )
    assert image.remarks == [
        Remark(1, None, "no record of type 6 is known"),
        Remark(2, "RemoveTopicRecord", "there is no topic with topic_id T", True),
        Remark(3, "FenceBrokerRecord", "there is no broker with broker_id 5", True),
    ]
    assert not any(image.tables.values())


def test_secrets_are_hidden_unless_they_are_asked_for() -> None:
    # F194
    secret = {**CONFIG, "name": "sasl.jaas.config", "value": "opens sesame"}
    user = {"name": "alice", "mechanism": 1, "salt": b"s", "storedKey": b"k", "serverKey": b"v"}
    records = [
        TOPIC,
        PARTITION,
        Record("ConfigRecord", secret),
        Record("UserScramCredentialRecord", {**user, "iterations": 4096}),
    ]
    image = image_of(records)
    for kind, text in (("config", "opens"), ("topic", "opens"), ("user", "aw==")):
        assert text not in str(cluster_rows(kind, image))
        assert text in str(cluster_rows(kind, image, show_secrets=True))
    assert "opens" not in str([*admin_commands(image)])
    assert "opens" in str([*admin_commands(image, show_secrets=True)])


def test_commands_are_those_of_kafkas_tools() -> None:
    # By the tools' help of Kafka 4.3.1.
    server = '--bootstrap-server "$BOOTSTRAP_SERVER"'
    broker = {"resourceType": 4, "resourceName": "", "name": "listeners", "value": "a,b"}
    records = [
        TOPIC,
        PARTITION,
        Record("ConfigRecord", CONFIG),
        Record("ConfigRecord", broker),
        Record("ClientQuotaRecord", QUOTA),
        ACL,
    ]
    assert [*admin_commands(image_of(records))] == [
        f"kafka-topics.sh {server} --create --topic orders --replica-assignment 1:2 "
        "--config retention.ms=5",
        f"kafka-configs.sh {server} --alter --entity-type brokers --entity-default "
        "--add-config 'listeners=[a,b]'",
        f"kafka-configs.sh {server} --alter --entity-type clients --entity-name app "
        "--entity-type users --entity-default --add-config producer_byte_rate=1024",
        f"kafka-acls.sh {server} --add --allow-principal User:alice --allow-host '*' "
        "--operation Read --topic ord --resource-pattern-type prefixed",
    ]
    assert len([*admin_commands(image_of(records), ["orders"])]) == 2
    assert len([*admin_commands(image_of(records), ["other"])]) == 0
