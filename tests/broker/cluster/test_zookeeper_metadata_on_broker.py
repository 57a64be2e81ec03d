"""The metadata of a live broker 3.9.2 with ZooKeeper, by the files of ZooKeeper, is what the
broker's own tools say: delegation tokens, features, ACLs, users and quotas. Rules: F830, F831, F892
and F893."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.broker.old_broker import OldBroker, old_broker
from tests.support.broker.zookeeper_server import zookeeper_server

pytestmark = pytest.mark.deep

_TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
_FEATURES = "org.apache.kafka.tools.FeatureCommand"
_ACLS = "kafka.admin.AclCommand"
_CONFIGS = "kafka.admin.ConfigCommand"
_LOGIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="{0}" password="{0}"'
)
# Only users who are known can have tokens.
_SETTINGS = {
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        _LOGIN.format("admin") + ' user_admin="admin" user_alice="alice";'
    ),
    "delegation.token.secret.key": "secret",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:admin",
}
_LISTED = re.compile(
    r"\(principal=(.+), host=(\S+), operation=(\S+), permissionType=(\S+)\)|"
    r"resourceType=(\S+), name=(.+), patternType=(\S+)\)`"
)


class Cluster:
    """The broker, its users' settings, and ZooKeeper's directory."""

    def __init__(self, broker: OldBroker, folder: Path) -> None:
        self._broker = broker
        self._folder = folder

    def run(self, main_class: str, *arguments: str, user: str = "admin") -> str:
        login = self._folder / f"{user}.properties"
        login.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f"sasl.jaas.config={_LOGIN.format(user)};\n"
        )
        return self._broker.run(main_class, "--command-config", str(login), *arguments)

    def new_token(self, *arguments: str, user: str = "admin") -> tuple[str, str]:
        """Return the id and the key of a new token."""
        said = self.run(_TOKENS, "--create", *arguments, user=user)
        token_id, key = said.strip().splitlines()[-1].split()[:2]
        return token_id, key

    def rows(self, kind: str) -> list[dict[str, Any]]:
        path = str(self._folder / "zookeeper" / "data")
        given = ["metadata", path, "--by", kind, "--format", "json"]
        result = CliRunner().invoke(kafkalog, given)
        assert result.exit_code == 0, result.stderr
        return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("zookeeper-cluster")
    with ExitStack() as stack:
        server = stack.enter_context(zookeeper_server(folder / "zookeeper", {}))
        broker = stack.enter_context(
            old_broker(
                *(folder / "kafka", folder / "logs", server.port, _SETTINGS),
                jars="kafka39",
                protocol="SASL_PLAINTEXT",
            )
        )
        yield Cluster(broker, folder)


def minute(time_ms: int) -> str:
    """A time as the tool prints it."""
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M")


def test_tokens_are_those_that_the_tool_describes(cluster: Cluster) -> None:
    # F892
    renewers = ("--renewer-principal", "User:bob smith*", "--renewer-principal", "User:carol")
    renewed, key = cluster.new_token("--max-life-time-period", "-1", *renewers)
    of_alice, _ = cluster.new_token("--max-life-time-period", "86400000", user="alice")
    of_dora, _ = cluster.new_token(
        "--max-life-time-period", "-1", "--owner-principal", "User:dora=x, y"
    )
    removed, removed_key = cluster.new_token("--max-life-time-period", "-1")
    before = {row["token_id"]: row for row in cluster.rows("token")}
    assert before.keys() == {renewed, of_alice, of_dora, removed}
    cluster.run(_TOKENS, "--renew", "--renew-time-period", "172800000", "--hmac", key)
    cluster.run(_TOKENS, "--expire", "--expiry-time-period", "-1", "--hmac", removed_key)

    owners = ("User:admin", "User:alice", "User:dora=x, y")
    named = [word for owner in owners for word in ("--owner-principal", owner)]
    described = cluster.run(_TOKENS, "--describe", *named)
    found = cluster.rows("token")
    assert {row["token_id"] for row in found} == {renewed, of_alice, of_dora}
    for row in found:
        (line,) = (each for each in described.splitlines() if each.startswith(row["token_id"]))
        times = [minute(row[name]) for name in ("issued_ms", "expires_ms", "last_expiry_ms")]
        assert f" {row['owner']} " in line and f" {row['requester']} " in line
        assert f"[{', '.join(row['renewers'])}]" in line
        assert line.split()[-3:] == times
    after = {row["token_id"]: row for row in found}
    assert after[of_dora]["owner"] == "User:dora=x, y"
    assert after[of_dora]["requester"] == "User:admin"
    assert after[renewed]["renewers"] == ["User:bob smith*", "User:carol"]
    # The second day is of the renewal.
    assert after[renewed]["expires_ms"] - before[renewed]["expires_ms"] > 80_000_000


def test_acls_are_those_that_the_tool_lists(cluster: Cluster) -> None:
    # F830
    for arguments in (
        ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders"),
        (
            *("--deny-principal", "User:bob", "--deny-host", "10.0.0.1", "--operation", "All"),
            *("--topic", "team-", "--resource-pattern-type", "prefixed"),
        ),
        ("--allow-principal", "User:CN=a,O=b", "--operation", "Describe", "--group", "*"),
        ("--allow-principal", "User:alice", "--operation", "ClusterAction", "--cluster"),
        ("--allow-principal", "User:a", "--operation", "Write", "--transactional-id", "t"),
        ("--allow-principal", "User:a", "--operation", "Describe", "--delegation-token", "x"),
    ):
        cluster.run(_ACLS, "--add", "--force", *arguments)
    listed: set[tuple[str, ...]] = set()
    resource: tuple[str, ...] = ()
    for line in cluster.run(_ACLS, "--list").splitlines():
        for *entry, kind, name, pattern in _LISTED.findall(line):
            if kind:
                resource = (kind.lower().replace("_", "-"), name, pattern.lower())
            else:
                principal, host, operation, permission = (each.lower() for each in entry)
                listed.add((principal, host, operation.replace("_", ""), permission, *resource))
    names = ("resource_type", "resource_name", "pattern_type")
    found = {
        (
            *(row[name].lower() for name in ("principal", "host", "operation", "permission")),
            *(row[name] for name in names),
        )
        for row in cluster.rows("acl")
    }
    assert len(listed) == 6
    assert found == listed


def test_users_and_quotas_are_those_that_the_tool_describes(cluster: Cluster) -> None:
    # F831
    alter = (_CONFIGS, "--alter", "--entity-type")
    user_name = "CN=u v"
    for setting in ("SCRAM-SHA-512=[iterations=5000,password=p]", "producer_byte_rate=1000"):
        cluster.run(*alter, "users", "--entity-name", user_name, "--add-config", setting)
    cluster.run(*alter, "clients", "--entity-default", "--add-config", "request_percentage=12.5")
    described = cluster.run(_CONFIGS, "--describe", "--entity-type", "users")
    described += cluster.run(_CONFIGS, "--describe", "--entity-type", "clients")
    assert "SCRAM-SHA-512=iterations=5000" in described
    assert "Quota configs for user-principal 'CN=u v' are producer_byte_rate=1000.0" in described
    assert "Quota configs for the default client-id are request_percentage=12.5" in described
    (user,) = cluster.rows("user")
    assert (user["user"], user["mechanism"], user["iterations"]) == (
        *(user_name, "SCRAM-SHA-512", 5000),
    )
    assert cluster.rows("quota") == [
        {"entity": "client-id=<default>", "quota": "request_percentage", "value": 12.5},
        {"entity": "user=CN=u v", "quota": "producer_byte_rate", "value": 1000.0},
    ]


def test_the_broker_has_no_features_and_supports_none(cluster: Cluster) -> None:
    # F893
    assert cluster.run(_FEATURES, "describe").strip() == ""
    assert cluster.rows("feature") == []
