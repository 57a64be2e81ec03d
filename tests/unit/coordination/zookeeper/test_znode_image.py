"""Znodes that no fixture has: ACLs, defaults, users with clients, and what says nothing. Rules:
F830 to F833, F892 and F893; the texts are those of Kafka's documents, of its class AclEntry, of its
FeatureZNodeTest, and of a broker 3.9.2."""

import json

import pytest

from kafkalog.coordination.zookeeper.znode_image import ZnodeFacts, ZnodeImage


def image(znodes: dict[str, object]) -> ZnodeImage:
    return ZnodeImage.of(
        ZnodeFacts(path, data if isinstance(data, bytes) else json.dumps(data).encode(), 3, 9)
        for path, data in znodes.items()
    )


def settings(**values: str) -> dict[str, object]:
    return {"version": 1, "config": values}


def test_acls_are_those_of_literal_and_prefixed_names() -> None:
    # F830
    allow = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}
    deny = {**allow, "permissionType": "Deny", "operation": "DescribeConfigs", "host": "10.0.0.1"}
    found = image(
        {
            "/kafka-acl/Topic/orders": {"version": 1, "acls": [allow, deny]},
            "/kafka-acl/TransactionalId/id": {"version": 1, "acls": [allow]},
            "/kafka-acl-extended/prefixed/Group/team-": {"version": 1, "acls": [allow]},
            "/kafka-acl/Cluster": b"",
        }
    )
    columns = ("permission", "operation", "resource_type", "resource_name", "pattern_type", "host")
    assert [tuple(row[name] for name in columns) for row in found.rows("acl")] == [
        ("allow", "Read", "topic", "orders", "literal", "*"),
        ("allow", "Read", "transactional-id", "id", "literal", "*"),
        ("allow", "Read", "group", "team-", "prefixed", "*"),
        ("deny", "DescribeConfigs", "topic", "orders", "literal", "10.0.0.1"),
    ]
    assert {(row["principal"], row["acl_id"]) for row in found.rows("acl")} == {("User:a", None)}
    assert found.unreadable == []


def test_quotas_are_of_users_clients_and_addresses() -> None:
    # F831: names are URL-encoded.
    found = image(
        {
            "/config/users/<default>": settings(producer_byte_rate="10"),
            "/config/users/CN%3Dalice/clients/backup": settings(consumer_byte_rate="20.5"),
            "/config/clients/<default>": settings(request_percentage="200"),
            "/config/ips/10.0.0.1": settings(connection_creation_rate="5"),
            "/config/changes/config_change_0000000000": {"version": 2, "entity_path": "users/x"},
        }
    )
    assert {(row["entity"], row["quota"], row["value"]) for row in found.rows("quota")} == {
        ("user=<default>", "producer_byte_rate", 10.0),
        ("client-id=backup, user=CN=alice", "consumer_byte_rate", 20.5),
        ("client-id=<default>", "request_percentage", 200.0),
        ("ip=10.0.0.1", "connection_creation_rate", 5.0),
    }
    assert (found.rows("user"), found.rows("config"), found.unreadable) == ([], [], [])


def test_a_topic_without_an_id_has_none_and_a_new_one_no_leader() -> None:
    # F832
    found = image(
        {
            "/brokers/topics/old": {"version": 1, "partitions": {"0": [1, 2]}},
            "/brokers/topics/left": b"",
        }
    )
    (topic,) = found.rows("topic")
    assert (topic["topic"], topic["topic_id"], topic["replication_factor"]) == ("old", None, 2)
    assert (topic["leaderless_partitions"], topic["under_replicated_partitions"]) == (1, 1)
    (partition,) = found.rows("partition")
    known = {name: value for name, value in partition.items() if value not in (None, [])}
    assert known == {"topic": "old", "partition": 0, "leader": -1, "replicas": [1, 2]}


def test_a_reassignment_and_a_state_are_those_of_the_partition() -> None:
    state = {"controller_epoch": 1, "leader": 2, "version": 1, "leader_epoch": 7, "isr": [2, 3]}
    found = image(
        {
            "/brokers/topics/moved/partitions/0/state": state,
            "/brokers/topics/moved": {
                "version": 3,
                "topic_id": "A" * 22,
                "partitions": {"0": [2, 3, 1]},
                "adding_replicas": {"0": [3]},
                "removing_replicas": {"0": [1]},
            },
        }
    )
    (row,) = found.rows("partition")
    assert (row["topic_id"], row["leader"], row["leader_epoch"]) == ("A" * 22, 2, 7)
    assert (row["isr"], row["adding_replicas"], row["removing_replicas"]) == ([2, 3], [3], [1])
    assert row["partition_epoch"] == 3


def test_brokers_have_named_listeners_or_a_host_and_a_port() -> None:
    # F435, F833
    found = image(
        {
            "/brokers/ids/1": {"version": 1, "host": "old", "port": 9092, "jmx_port": -1},
            "/brokers/ids/2": {
                "version": 5,
                "host": None,
                "port": -1,
                "endpoints": ["INSIDE://new:9093"],
                "listener_security_protocol_map": {"INSIDE": "SASL_SSL"},
                "rack": "r",
            },
        }
    )
    assert [
        (row["end_points"], row["rack"], row["broker_epoch"]) for row in found.rows("broker")
    ] == [(["PLAINTEXT://old:9092"], None, 9), (["INSIDE:SASL_SSL://new:9093"], "r", 9)]


def test_what_says_nothing_is_named_without_its_data() -> None:
    found = image(
        {
            "/brokers/ids/1": b"secret",
            "/config/users/a": b'{"config": {"SCRAM-SHA-256": 7}}',
            "/config/users/b": settings(**{"SCRAM-SHA-256": "salt=AA==,iterations=x"}),
            "/config/users/c": settings(**{"SCRAM-SHA-256": "salt=?,iterations=1"}),
            "/config/users/d/others/e": settings(quota="1"),
            "/config/clients/f": settings(quota="much"),
            "/brokers/topics/g/partitions/x/state": {
                "controller_epoch": 1, "leader": 2, "version": 1, "leader_epoch": 7, "isr": [],
            },
        }
    )  # fmt: skip
    assert [path for path, _ in found.unreadable] == [
        *("/brokers/ids/1", "/config/users/a", "/config/users/b", "/config/users/c"),
        *("/config/users/d/others/e", "/config/clients/f", "/brokers/topics/g/partitions/x/state"),
    ]
    assert "salt" not in " ".join(detail for _, detail in found.unreadable[1:])


TOKEN = {
    "issueTimestamp": 1795600442450,
    "renewers": ["User%3Abob%20smith%2A", "User%3Acarol"],
    "tokenRequester": "User%3Aadmin",
    "tokenId": "naojq5LcSuazIMB8-fqs6A",
    "owner": "User%3Adora",
    "expiryTimestamp": 1795686842450,
    "maxTimestamp": 1796205242450,
    "version": 3,
}


def test_a_token_is_what_the_broker_keeps_of_it() -> None:
    # F892
    before = {name: value for name, value in TOKEN.items() if name != "tokenRequester"}
    found = image(
        {
            "/delegation_token/tokens/naojq5LcSuazIMB8-fqs6A": TOKEN,
            "/delegation_token/tokens/old": {**before, "tokenId": "old", "version": 1},
            "/delegation_token/token_changes/token_change_0000000000": b"naojq5LcSuazIMB8-fqs6A",
        }
    )
    row = {
        "token_id": "naojq5LcSuazIMB8-fqs6A",
        "owner": "User:dora",
        "requester": "User:admin",
        "renewers": ["User:bob smith*", "User:carol"],
        "issued_ms": 1795600442450,
        "expires_ms": 1795686842450,
        "last_expiry_ms": 1796205242450,
    }
    old = {**row, "token_id": "old", "requester": "User:dora"}
    assert (found.rows("token"), found.unreadable) == ([row, old], [])


@pytest.mark.parametrize("name", sorted(TOKEN))
def test_a_token_that_lacks_a_field_is_unreadable(name: str) -> None:
    # F892
    found = image({"/delegation_token/tokens/a": {**TOKEN, name: None}})
    assert [each.detail for each in found.unreadable] == [f"no field {name}"]
    later = image({"/delegation_token/tokens/a": {**TOKEN, "version": 4}})
    assert [each.detail for each in later.unreadable] == ["version 4 is not known"]
    assert found.rows("token") == later.rows("token") == []


@pytest.mark.parametrize("version", [1, 2])
def test_features_have_their_highest_level(version: int) -> None:
    # F893
    levels = {"feature1": (1, 2), "feature2": (2, 4)}
    features = {
        name: {"max_version_level": highest} | ({"min_version_level": low} if version == 1 else {})
        for name, (low, highest) in levels.items()
    }
    znode = {"version": version, "status": 1, "features": features}
    rows = image({"/feature": znode}).rows("feature")
    assert [(row["feature"], row["level"]) for row in rows] == [("feature1", 2), ("feature2", 4)]
    off = image({"/feature": {**znode, "status": 0}})
    assert (off.rows("feature"), off.unreadable) == ([], [])


def test_features_that_say_nothing_are_unreadable() -> None:
    # F893
    unreadable: list[object] = [{"a": {}}, {"a": {"max_version_level": 0}}, {"a": 1}, []]
    for features in unreadable:
        found = image({"/feature": {"version": 2, "status": 1, "features": features}})
        assert ([each.path for each in found.unreadable], found.rows("feature")) == (
            ["/feature"],
            [],
        )
