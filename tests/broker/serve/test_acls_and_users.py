"""ACLs, users and quotas: the answers of `kafkalog serve` are those of the live broker, field by
field."""

from pathlib import Path
from typing import Any

import pytest

from kafkalog import serve
from tests.support.broker.java_tools import run_tool
from tests.support.broker.kafka_server import KafkaServer
from tests.support.serve.raw_client import raw_client, request_bytes

pytestmark = [pytest.mark.broker, pytest.mark.deep]

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
PREFIXED = ("--resource-pattern-type", "prefixed")
ADDED = [
    ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders"),
    ("--deny-principal", "User:bob", "--operation", "Write", "--topic", "*"),
    ("--allow-principal", "User:bob", "--operation", "All", "--topic", "or", *PREFIXED),
    ("--allow-principal", "User:alice", "--operation", "Read", "--group", "readers"),
    ("--allow-principal", "User:carol", "--operation", "Read", "--topic", "orders"),
]
REMOVED = ("--force", *ADDED[-1])
ANY, MATCH, LITERAL, PREFIX = 1, 2, 3, 4
TOPIC, READ = 2, 3
CODES = ("resourceTypeFilter", "patternTypeFilter", "operation", "permissionType")
EVERYTHING: dict[str, Any] = {
    **dict.fromkeys(CODES, ANY),
    **dict.fromkeys(("resourceNameFilter", "principalFilter", "hostFilter")),
}
FILTERS: list[dict[str, Any]] = [
    {},
    *(
        {"resourceTypeFilter": TOPIC, "resourceNameFilter": name, "patternTypeFilter": pattern}
        for name in ("orders", "or", "*", "unknown", None)
        for pattern in (ANY, MATCH, LITERAL, PREFIX)
    ),
    {"principalFilter": "User:bob"},
    {"hostFilter": "*"},
    {"hostFilter": "10.0.0.1"},
    {"operation": READ},
    {"permissionType": 2},
    # Nothing has these codes; 0 means UNKNOWN.
    *({name: code} for name in CODES for code in (0, 100, -1)),
]
USERS = [None, [], ["alice"], ["unknown"], ["alice", "alice", "bob"]]
EXACT, DEFAULT, ANY_NAME = 0, 1, 2
COMPONENTS: list[list[dict[str, Any]]] = [
    [],
    *(
        [{"entityType": kind, "matchType": match, "match": name}]
        for kind in ("user", "client-id", "ip")
        for match, name in ((EXACT, "alice"), (EXACT, "unknown"), (DEFAULT, None), (ANY_NAME, None))
    ),
    [
        {"entityType": "user", "matchType": EXACT, "match": "alice"},
        {"entityType": "client-id", "matchType": ANY_NAME, "match": None},
    ],
]
QUOTAS = (
    ("--entity-type", "users", "--entity-name", "alice"),
    ("--entity-type", "users", "--entity-default"),
    (
        *("--entity-type", "users", "--entity-name", "alice"),
        *("--entity-type", "clients", "--entity-name", "reader"),
    ),
)


def asked(address: str, name: str, version: int, values: dict[str, Any]) -> Any:
    """The answer to a request, its lists in an order of their own; None if the connection ends."""
    with raw_client(address) as client:
        client.socket.sendall(request_bytes(name, version, values, 1))
        if not client.receive():
            return None
        # The connection goes on, so this is answered: read by its definition, to its last byte.
        return in_order(client.ask(name, version, **values))


def in_order(value: Any) -> Any:
    """A value with its lists in the order of their text: brokers go through hash tables."""
    if isinstance(value, dict):
        return {name: in_order(each) for name, each in value.items()}
    return sorted(map(in_order, value), key=str) if isinstance(value, list) else value


def answers(address: str) -> list[Any]:
    """What a server says of each filter of ACLs and of quotas, and of users, in each version."""
    found: list[Any] = []
    for version in (1, 2, 3):
        for each in FILTERS:
            found.append(
                (version, each, asked(address, "DescribeAcls", version, EVERYTHING | each))
            )
    for names in USERS:
        users = None if names is None else [{"name": name} for name in names]
        answer = asked(address, "DescribeUserScramCredentials", 0, {"users": users})
        found.append((names, answer))
    for version in (0, 1):
        for components in COMPONENTS:
            for strict in (False, True):
                filtered = {"components": components, "strict": strict}
                answer = asked(address, "DescribeClientQuotas", version, filtered)
                found.append((version, filtered, answer))
    return found


def test_acls_users_and_quotas_are_those_of_the_broker(tmp_path: Path) -> None:
    with KafkaServer(tmp_path, settings=SETTINGS) as broker:
        broker.create_topic("orders", 1)
        for acl in ADDED:
            broker.run_client("AclCommand", ["--add", *acl])
        broker.run_client("AclCommand", ["--remove", *REMOVED])
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            given = ["--bootstrap-server", broker.bootstrap, "--alter", "--entity-type", "users"]
            given += ["--entity-name", "alice", "--add-config", f"{mechanism}=[password=secret]"]
            run_tool("kafka.admin.ConfigCommand", given)
        for entity in QUOTAS:
            given = ["--bootstrap-server", broker.bootstrap, "--alter", *entity]
            given += ["--add-config", "producer_byte_rate=1024,consumer_byte_rate=2048"]
            run_tool("kafka.admin.ConfigCommand", given)
        live = answers(broker.bootstrap)
    with serve([str(broker.log_dir), str(tmp_path / "metadata")]) as running:
        found = answers(running.bootstrap_servers)
    for ours, expected in zip(found, live, strict=True):
        assert ours == expected
    # The answers that are compared say something.
    said = [answer for *_, answer in live]
    assert None in said
    for name in ("resources", "results", "entries"):
        assert sum(bool(answer[name]) for answer in said if answer and name in answer) > 2
