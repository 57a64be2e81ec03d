"""Command lines of Kafka's own tools that make an image's topics, configs, quotas and ACLs again.

What the metadata does not have, or what is hidden, is a comment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from shlex import quote

from kafkalog.coordination.metadata.image import KRAFT_VERSION, MetadataImage, Row
from kafkalog.format.secret_configs import HIDDEN, shown_config

SERVER = '--bootstrap-server "$BOOTSTRAP_SERVER"'
_ENTITY_TYPES = {
    "topic": "topics",
    "broker": "brokers",
    "group": "groups",
    "client-metrics": "client-metrics",
    "user": "users",
    "client-id": "clients",
    "ip": "ips",
}
_RESOURCE_OPTIONS = {
    "topic": "--topic",
    "group": "--group",
    "transactional-id": "--transactional-id",
    "delegation-token": "--delegation-token",
    "user": "--user-principal",
}


def admin_commands(
    image: MetadataImage, topics: Collection[str] = (), *, show_secrets: bool = False
) -> Iterator[str]:
    """Yield command lines, and comments about what has none; only those about the topics, if any
    are given."""
    if not topics:
        yield from _features(image)
    yield from _topics(image, topics, show_secrets)
    if not topics:
        yield from _configs(image, show_secrets)
        yield from _quotas(image)
        yield from _users(image)
    yield from _acls(image, topics)


def _features(image: MetadataImage) -> Iterator[str]:
    for (name,), row in sorted(image.tables["feature"].items()):
        if name != KRAFT_VERSION:
            yield f"kafka-features.sh {SERVER} upgrade --feature {quote(name)}={row['level']}"


def _topics(image: MetadataImage, topics: Collection[str], show_secrets: bool) -> Iterator[str]:
    for row in sorted(image.rows("topic"), key=lambda row: row["topic"]):
        topic = row["topic"]
        if topics and topic not in topics:
            continue
        numbers = sorted(key[1] for key in image.group("partition", row["topic_id"]))
        if numbers != list(range(len(numbers))) or not numbers:
            yield f"# topic {topic}: partitions are missing in the metadata, there are {numbers}"
            continue
        replicas = (
            image.tables["partition"][row["topic_id"], each]["replicas"] for each in numbers
        )
        assignment = ",".join(":".join(map(str, each)) for each in replicas)
        line = f"kafka-topics.sh {SERVER} --create --topic {quote(topic)}"
        line += f" --replica-assignment {assignment}"
        for key in sorted(image.group("config", "topic", topic)):
            name, value = key[2], image.tables["config"][key]["value"]
            if _is_hidden(name, value, show_secrets):
                yield _hidden(f"topic {topic}", name)
            else:
                line += f" --config {quote(f'{name}={value}')}"
        yield line


def _is_hidden(name: str, value: str, show_secrets: bool) -> bool:
    return not show_secrets and shown_config(name, value) == HIDDEN


def _hidden(what: str, name: str) -> str:
    return f"# {what}: {name} is a secret, which --show-secrets adds"


def _configs(image: MetadataImage, show_secrets: bool) -> Iterator[str]:
    for (kind, resource, name), row in sorted(image.tables["config"].items()):
        if kind == "topic":
            continue
        if _is_hidden(name, row["value"], show_secrets):
            yield _hidden(f"{kind} {resource}", name)
            continue
        # The tool takes a value with commas in brackets.
        value = f"[{row['value']}]" if "," in row["value"] else row["value"]
        yield _alter([(kind, resource or None)], f"{name}={value}")


def _alter(entities: Iterable[tuple[str, str | None]], config: str) -> str:
    line = f"kafka-configs.sh {SERVER} --alter"
    for kind, name in entities:
        line += f" --entity-type {_ENTITY_TYPES.get(kind, kind)}"
        line += " --entity-default" if name is None else f" --entity-name {quote(name)}"
    return f"{line} --add-config {quote(config)}"


def _quotas(image: MetadataImage) -> Iterator[str]:
    for (entity, name), row in image.tables["quota"].items():
        yield _alter(entity, f"{name}={row['value']:.15g}")


def _users(image: MetadataImage) -> Iterator[str]:
    for user, mechanism in sorted(image.tables["user"]):
        yield f"# user {user}, {mechanism}: the metadata has no password, set a new one:"
        yield f"# {_alter([('user', user)], f'{mechanism}=[password=...]')}"


def _acls(image: MetadataImage, topics: Collection[str]) -> Iterator[str]:
    rows = sorted(image.tables["acl"].values(), key=lambda row: (row["principal"], str(row)))
    for row in rows:
        if not topics or _is_about(row, topics):
            yield _acl(row)


def _is_about(row: Row, topics: Collection[str]) -> bool:
    """Return whether an ACL applies to one of the topics."""
    if row["resource_type"] != "topic":
        return False
    name = row["resource_name"]
    if row["pattern_type"] == "prefixed":
        return any(topic.startswith(name) for topic in topics)
    return name == "*" or name in topics


def _acl(row: Row) -> str:
    permission = row["permission"]
    line = f"kafka-acls.sh {SERVER} --add --{permission}-principal {quote(row['principal'])}"
    line += f" --{permission}-host {quote(row['host'])} --operation {row['operation']}"
    if row["resource_type"] == "cluster":
        return f"{line} --cluster"
    option = _RESOURCE_OPTIONS.get(row["resource_type"], f"--{row['resource_type']}")
    line += f" {option} {quote(row['resource_name'])}"
    return line if row["pattern_type"] == "literal" else f"{line} --resource-pattern-type prefixed"
