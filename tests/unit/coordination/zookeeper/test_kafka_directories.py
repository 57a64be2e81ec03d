"""Kafka's directories as the documents of each generation write them, and what is not such data.
Rules: F430, F431, F434 to F449, F465."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.coordination.zookeeper.kafka_directories import DIRECTORY_VIEWS, kafka_rows
from kafkalog.coordination.zookeeper.znode_paths import (
    ChrootPath,
    PathTemplate,
    below_root,
    cluster_roots,
)
from kafkalog.schemas import table_fields

Row = dict[str, Any]


def rows(path: str, data: str | bytes | None) -> list[tuple[str, Row]]:
    """View and values, those that are None left out."""
    raw = data.encode() if isinstance(data, str) else data
    return [
        (row.view, {name: value for name, value in row.values.items() if value is not None})
        for row in kafka_rows(path, raw)
    ]


def row(path: str, data: str | bytes | None) -> Row:
    ((_, values),) = rows(path, data)
    return values


def test_the_notation_of_the_documents() -> None:
    # F430
    template = PathTemplate("/brokers/topics/[topic]/[broker_id]")
    assert template.names("/brokers/topics/orders/0") == {"topic": "orders", "broker_id": "0"}
    assert template.names("/brokers/topics/orders") is None
    assert template.names("/brokers/ids/orders/0") is None
    assert PathTemplate("/config/...").names("/config/users/a/clients/b") == {
        "": "users/a/clients/b"
    }


def test_clusters_are_found_by_what_is_at_their_root() -> None:
    # F431
    paths = ["/brokers/ids", "/brokers/topics/consumers", "/kafka/prod/consumers", "/other/x"]
    assert cluster_roots([*paths, "/brokers/topics", "/zookeeper/consumers"]) == ["", "/kafka/prod"]
    assert below_root("/kafka/prod/consumers/g", ["", "/kafka/prod"]) == ChrootPath(
        "/kafka/prod", "/consumers/g"
    )
    assert below_root("/brokers/ids/0", ["", "/kafka/prod"]) == ChrootPath("", "/brokers/ids/0")
    assert below_root("/other/x", ["", "/kafka/prod"]) is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("localhost:9092", {"host": "localhost", "port": 9092}),  # F434
        ("host-1303:host:9092", {"creator": "host-1303", "host": "host", "port": 9092}),
        (  # F435: the first JSON, of 0.8
            '{"jmx_port":-1,"timestamp":"17","host":"h","version":1,"port":1}',
            {"host": "h", "port": 1, "jmx_port": -1, "version": 1, "timestamp_ms": 17},
        ),
        (  # no plaintext listener
            '{"endpoints":["SSL://h:2"],"host":null,"port":-1,"version":2,"timestamp":18}',
            {"endpoints": ("SSL://h:2",), "port": -1, "version": 2, "timestamp_ms": 18},
        ),
        (
            '{"port":1,"version":5,"rack":"r","features":{"f":{"min_version":1,"max_version":2}}}',
            {
                "port": 1,
                "version": 5,
                "rack": "r",
                "features": [{"name": "f", "min_version": 1, "max_version": 2}],
            },
        ),
    ],
)
def test_brokers(data: str, expected: Row) -> None:
    assert rows("/brokers/ids/7", data) == [("broker_registry", {"broker_id": 7, **expected})]


def test_a_topic_of_0_7_has_partitions_of_each_broker() -> None:
    # F439
    assert rows("/brokers/topics/orders", None) == []
    assert rows("/brokers/topics/orders/3", "4") == [
        ("topic_registry", {"topic": "orders", "broker_id": 3, "broker_partitions": 4})
    ]
    assert rows("/brokers/topics/orders/partitions", None) == []
    assert row("/brokers/topics/orders/3", "many")["reason"] == "malformed"


def test_a_topic_of_later_versions_has_partitions_with_replicas() -> None:
    # F440
    data = {
        "version": 3,
        "topic_id": "x",
        "partitions": {"10": [1, 2], "2": [2]},
        "adding_replicas": {"10": [3]},
        "removing_replicas": {},
    }
    facts = {"topic": "t", "topic_id": "x", "version": 3}
    assert rows("/brokers/topics/t", json.dumps(data)) == [
        ("topic_registry", {**facts, "partition": 2, "replicas": (2,)}),
        ("topic_registry", {**facts, "partition": 10, "replicas": (1, 2), "adding_replicas": (3,)}),
    ]
    assert rows("/brokers/topics/t", '{"version":1,"partitions":{}}') == [
        ("topic_registry", {"topic": "t", "version": 1})
    ]


def test_states_of_partitions() -> None:
    # F441
    data = '{"controller_epoch":1,"leader":-1,"version":1,"leader_epoch":2,"isr":[]}'
    assert row("/brokers/topics/t/partitions/5/state", data) == {
        "topic": "t",
        "partition": 5,
        "leader": -1,
        "leader_epoch": 2,
        "isr": (),
        "controller_epoch": 1,
        "version": 1,
    }


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ('{ "a": 2 }', ("static", "a", 2)),  # F445
        ('{"subscription": 1}', ("static", "subscription", 1)),
        ("*4*white.*", ("white_list", "white.*", 4)),
        ("!1!black", ("black_list", "black", 1)),
        ('{"version":1,"subscription":{"a":3},"pattern":"static"}', ("static", "a", 3)),  # F446
        ('{"subscription":{"a|b":1},"pattern":"black_list"}', ("black_list", "a|b", 1)),
    ],
)
def test_consumers(data: str, expected: tuple[str, str, int]) -> None:
    found = row("/consumers/g/ids/g_host-1-ab", data)
    assert found["group_id"] == "g" and found["consumer_id"] == "g_host-1-ab"  # F444, F447
    assert (found["pattern"], found["subscribed"], found["streams"]) == expected


def test_a_consumer_has_a_row_for_each_topic() -> None:
    # F445
    found = rows("/consumers/g/ids/c", '{"a": 1, "b": 2}')
    assert [(values["subscribed"], values["streams"]) for _, values in found] == [
        ("a", 1),
        ("b", 2),
    ]


def test_the_znode_of_an_offset_without_data_has_a_row_that_says_so() -> None:
    # F448
    found = row("/consumers/g/offsets/t/3", None)
    assert (found["group_id"], found["topic"], found["partition"]) == ("g", "t", 3)
    assert "committed_offset" not in found
    assert found["detail"]


def test_offsets_and_owners_of_both_generations() -> None:
    # F448, F449
    assert row("/consumers/g/offsets/t/0-3", "512") == {
        "group_id": "g",
        "topic": "t",
        "broker_id": 0,
        "partition": 3,
        "committed_offset": 512,
    }
    assert row("/consumers/g/offsets/t/3", "512")["partition"] == 3
    assert row("/consumers/g/owners/t/3", "g_host-1-ab-12") == {
        "group_id": "g",
        "topic": "t",
        "partition": 3,
        "owner": "g_host-1-ab-12",
        "consumer_id": "g_host-1-ab",
        "stream": 12,
    }


@pytest.mark.parametrize(
    ("path", "data", "expected"),
    [
        ("/controller", "3", {"kind": "controller", "broker_id": 3, "value": "3"}),
        (
            "/controller",
            '{"brokerid":1,"timestamp":"5"}',
            {
                "kind": "controller",
                "broker_id": 1,
                "timestamp_ms": 5,
                "value": '{"brokerid":1,"timestamp":"5"}',
            },
        ),
        ("/controller_epoch", "2", {"kind": "controller_epoch", "epoch": 2, "value": "2"}),
        (
            "/config/changes/config_change_0",
            '"t"',
            {"kind": "config_change", "entity_path": "topics/t", "value": '"t"'},
        ),
        (
            "/config/users/alice",
            '{"version":1,"config":{"SCRAM-SHA-256":"salt=x","consumer_byte_rate":"1"}}',
            {
                "kind": "config",
                "entity_path": "users/alice",
                "settings": {"SCRAM-SHA-256": "***", "consumer_byte_rate": "1"},
            },
        ),
        ("/admin/delete_topics/t", None, {"kind": "deleted_topic", "topic": "t"}),
        ("/delegation_token/tokens/x", "secret", {"kind": "delegation_token"}),
        ("/kafka-acl/Topic/t", "{}", {"kind": "acl", "value": "{}"}),
    ],
)
def test_what_else_a_cluster_keeps(path: str, data: str | None, expected: Row) -> None:
    # F465
    assert rows(path, data) == [("cluster_znodes", expected)]


@pytest.mark.parametrize("data", ["salt=geheim", '"geheim"', '{"config":"geheim"}', "[geheim"])
def test_settings_that_cannot_be_read_are_not_shown(data: str) -> None:
    found = row("/config/users/alice", data)
    assert found["reason"] == "malformed"
    assert "geheim" not in str(found)


def test_tasks_and_notifications_have_a_row_for_each_partition() -> None:
    # F465
    data = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}'
    for path, kind in (
        ("/admin/reassign_partitions", "reassignment"),
        ("/admin/preferred_replica_election", "preferred_replica_election"),
        ("/isr_change_notification/isr_change_0", "isr_change"),
    ):
        found = row(path, data)
        assert (found["kind"], found["topic"], found["partition"]) == (kind, "t", 0)
    event = row("/log_dir_event_notification/log_dir_event_0", '{"broker":1,"event":1}')
    assert (event["kind"], event["broker_id"]) == ("log_dir_event", 1)


@pytest.mark.parametrize(
    ("path", "data", "detail"),
    [
        ("/brokers/ids/0", "localhost", "neither JSON nor host:port: 'localhost'"),
        ("/brokers/ids/0", "a:99999", "neither JSON nor host:port: 'a:99999'"),
        ("/brokers/ids/zero", "a:1", "no broker_id: 'zero'"),
        ("/brokers/ids/0", None, "no data"),
        ("/brokers/ids/0", b"\xff", "not UTF-8"),
        ("/brokers/ids/0", '{"port":true}', "field port is not a number of 32 bits: True"),
        ("/brokers/topics/t", "[1]", "no JSON object: [1]"),
        ("/brokers/topics/t", '{"partitions":{"a":[1]}}', "field partitions: no partition: 'a'"),
        ("/brokers/topics/t", "[" * 100_000, None),
        ("/consumers/g/ids/c", '{"t": 2000000000}', None),
        ("/consumers/g/ids/c", '{"subscription":{},"pattern":"glob"}', None),
        ("/consumers/g/offsets/t/0", "12x", "no decimal number of 64 bits: '12x'"),
        ("/consumers/g/offsets/t/0", "9" * 19, None),
        ("/consumers/g/offsets/t/0", "٣", None),
        ("/consumers/g/offsets/t/x", "1", "the name is not a partition: 'x'"),
        ("/consumers/g/owners/t/0", "unknown", None),
        ("/controller_epoch", "2147483648", None),
        ("/brokers/ids/0", '{"port":1,"rack":"\\ud800"}', None),
        ("/cluster/id", '{"version":"1"}', "no field id"),
        ("/cluster/id", '{"id":7}', "field id is not a text: 7"),
    ],
)
def test_what_cannot_be_read_is_a_row_that_says_why(
    path: str, data: str | bytes | None, detail: str | None
) -> None:
    found = row(path, data)
    assert found["reason"] == "malformed"
    assert detail in (None, found["detail"])


def test_a_cluster_may_have_any_id() -> None:
    # F442: a UUID as Java prints it is not base64 of 22 characters.
    found = row("/cluster/id", '{"version":"1","id":"f5b6a1f0-77b9-4d1e-9e0c-1ad56c7e2d11"}')
    assert (found.get("reason"), found["kind"]) == (None, "cluster_id")


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["version", "partitions", "0", "isr", "leader", "subscription", "pattern", "id",
                 "config", "endpoints", "features", "port", "host", "topic", "timestamp"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)  # fmt: skip
PATHS = st.sampled_from(
    [
        "/brokers/ids/0",
        "/brokers/topics/t",
        "/brokers/topics/t/0",
        "/brokers/topics/t/partitions/0/state",
        "/consumers/g/ids/c",
        "/consumers/g/offsets/t/0-1",
        "/consumers/g/owners/t/1",
        "/controller",
        "/controller_epoch",
        "/cluster/id",
        "/config/topics/t",
        "/config/changes/c",
        "/admin/reassign_partitions",
        "/isr_change_notification/n",
        "/log_dir_event_notification/n",
        "/feature",
        "/kafka-acl/Topic/t",
        "/delegation_token/tokens/t",
        "/somewhere/else",
    ]
)
DATA = st.one_of(
    st.none(), st.binary(max_size=30), JSON.map(lambda value: json.dumps(value).encode())
)
COLUMNS = {view: {field["name"] for field in table_fields(view)} for view in DIRECTORY_VIEWS}


@given(PATHS, DATA)
def test_any_data_gives_rows_of_the_view_of_its_path(path: str, data: bytes | None) -> None:
    for found in kafka_rows(path, data):
        assert set(found.values) <= COLUMNS[found.view]
