"""Rows about a cluster from its image, for commands and views: what each kind of row says.

Secrets are hidden unless they are requested. Rules: docs/format.md F194 and F763.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kafkalog.coordination.metadata.image import KEYS, Change, MetadataImage, Row
from kafkalog.coordination.metadata.releases import (
    METADATA_VERSION,
    least_release,
    metadata_versions,
)
from kafkalog.format.secret_configs import HIDDEN, shown_config

ClusterRow = dict[str, Any]


class RowKind(NamedTuple):
    """A kind of rows: its columns, and what makes the rows of an image."""

    columns: tuple[str, ...]
    rows: Callable[[MetadataImage], Iterable[ClusterRow]]


def _topics(image: MetadataImage) -> Iterator[ClusterRow]:
    for row in sorted(image.rows("topic"), key=lambda row: row["topic"]):
        keys = image.group("partition", row["topic_id"])
        partitions = [image.tables["partition"][key] for key in keys]
        yield {
            **row,
            "partitions": len(partitions),
            "replication_factor": max((len(each["replicas"]) for each in partitions), default=0),
            "leaderless_partitions": sum(each["leader"] < 0 for each in partitions),
            "under_replicated_partitions": sum(map(is_under_replicated, partitions)),
            "configs": {
                key[2]: image.tables["config"][key]["value"]
                for key in sorted(image.group("config", "topic", row["topic"]))
            },
        }


def _features(image: MetadataImage) -> Iterator[ClusterRow]:
    """Yield the features with the name of the level of `metadata.version`, and the earliest release
    of Kafka that reads each level, of those whose levels are known."""
    for row in image.rows("feature"):
        is_metadata = row["feature"] == METADATA_VERSION
        yield {
            **row,
            "level_name": metadata_versions().get(row["level"]) if is_metadata else None,
            "least_kafka_version": least_release({row["feature"]: row["level"]}),
        }


def is_under_replicated(partition: Row) -> bool:
    """Return whether not all replicas of a partition are in sync."""
    return len(partition["isr"]) < len(partition["replicas"])


def _partitions(image: MetadataImage) -> Iterator[ClusterRow]:
    for row in image.rows("partition"):
        yield {"topic": image.topic_of("partition", (row["topic_id"],)), **row}


def _quotas(image: MetadataImage) -> Iterator[ClusterRow]:
    for row in image.rows("quota"):
        yield {**row, "entity": entity_text(row["entity"])}


def entity_text(entity: Iterable[tuple[str, str | None]]) -> str:
    """Return to whom a quota applies, as `user=alice, client-id=<default>`."""
    return ", ".join(f"{kind}={'<default>' if name is None else name}" for kind, name in entity)


def _of_table(table: str) -> Callable[[MetadataImage], Iterable[ClusterRow]]:
    return lambda image: image.rows(table)


_PARTITION_COLUMNS = (
    *("topic", "partition", "leader", "leader_epoch", "partition_epoch", "replicas", "isr"),
    *("adding_replicas", "removing_replicas", "eligible_leader_replicas", "last_known_elr"),
    *("leader_recovery_state", "directories", "topic_id"),
)
_TOPIC_COLUMNS = (
    *("topic", "topic_id", "partitions", "replication_factor", "leaderless_partitions"),
    *("under_replicated_partitions", "configs"),
)
_BROKER_COLUMNS = (
    *("broker_id", "rack", "end_points", "is_fenced", "is_in_controlled_shutdown"),
    *("broker_epoch", "incarnation_id", "log_dirs", "cordoned_log_dirs", "features"),
)
ROW_KINDS: Mapping[str, RowKind] = {
    "topic": RowKind(_TOPIC_COLUMNS, _topics),
    "partition": RowKind(_PARTITION_COLUMNS, _partitions),
    "broker": RowKind(_BROKER_COLUMNS, _of_table("broker")),
    "controller": RowKind(
        ("controller_id", "end_points", "incarnation_id", "features"), _of_table("controller")
    ),
    "config": RowKind(("resource_type", "resource_name", "name", "value"), _of_table("config")),
    "acl": RowKind(
        (
            *("principal", "permission", "operation", "resource_type", "resource_name"),
            *("pattern_type", "host", "acl_id"),
        ),
        _of_table("acl"),
    ),
    "user": RowKind(
        ("user", "mechanism", "iterations", "salt", "stored_key", "server_key"), _of_table("user")
    ),
    "quota": RowKind(("entity", "quota", "value"), _quotas),
    "feature": RowKind(("feature", "level", "level_name", "least_kafka_version"), _features),
    "voter": RowKind(
        (
            *("voter_id", "voter_directory_id", "end_points", "min_kraft_version"),
            "max_kraft_version",
        ),
        _of_table("voter"),
    ),
    "token": RowKind(
        (
            *("token_id", "owner", "requester", "renewers", "issued_ms", "expires_ms"),
            "last_expiry_ms",
        ),
        _of_table("token"),
    ),
}
# Kinds whose rows are about topics.
OF_TOPICS = ("topic", "partition", "config")


def cluster_rows(
    kind: str, image: MetadataImage, *, show_secrets: bool = False
) -> list[ClusterRow]:
    """Return the rows of a kind, in the order of its first two columns."""
    columns, rows = ROW_KINDS[kind]
    found = (shown_row(row, show_secrets=show_secrets) for row in rows(image))
    return sorted(found, key=lambda row: [(row[name] is None, row[name]) for name in columns[:2]])


def shown_row(row: Row, *, show_secrets: bool) -> ClusterRow:
    """Return a row with HIDDEN in place of what is secret, and bytes as base64."""
    return {name: _shown(row, name, value, show_secrets) for name, value in row.items()}


def _shown(row: Row, column: str, value: Any, show_secrets: bool) -> Any:
    if column == "configs":
        return {each: _shown_config(each, text, show_secrets) for each, text in value.items()}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii") if show_secrets else HIDDEN
    is_config = column == "value" and "resource_type" in row
    return _shown_config(row["name"], value, show_secrets) if is_config else value


def _shown_config(name: str, value: str, show_secrets: bool) -> str:
    return value if show_secrets else shown_config(name, value)


class ChangeRow(NamedTuple):
    """A row about a change: of one column, or of a whole row, whose `column` is None and whose
    values are dictionaries. `kind` is the table, `name` the row's name in it."""

    kind: str
    name: str
    topic: str | None
    partition: int | None
    change: str
    column: str | None
    old: Any
    new: Any


def change_rows(change: Change, *, show_secrets: bool = False) -> Iterator[ChangeRow]:
    """Yield a row for each column that changed; one row for what was created or deleted."""
    keys = dict(zip(KEYS[change.table], change.key, strict=True))

    def row_of(values: Row | None) -> ClusterRow | None:
        if values is None:
            return None
        row = shown_row({**keys, **values}, show_secrets=show_secrets)
        return {name: value for name, value in row.items() if name not in keys}

    old, new = row_of(change.old), row_of(change.new)
    name = row_name(
        change.table, {**keys, **(change.old or {}), **(change.new or {})}, change.topic
    )
    place = (change.table, name, change.topic, keys.get("partition"))
    if old is None or new is None:
        yield ChangeRow(*place, "created" if old is None else "deleted", None, old, new)
        return
    # What is hidden has changed although it looks the same.
    for column, value in new.items():
        if (change.old or {})[column] != (change.new or {})[column]:
            yield ChangeRow(*place, "altered", column, old[column], value)


def row_name(table: str, row: Row, topic: str | None) -> str:
    """Return what a row is about, in a few words."""
    match table:
        case "topic":
            return str(row["topic"])
        case "partition":
            return f"{topic or row['topic_id']}-{row['partition']}"
        case "quota":
            return f"{entity_text(row['entity'])} {row['quota']}"
        case "acl":
            resource = f"{row['pattern_type']} {row['resource_type']} {row['resource_name']}"
            what = f"{row['principal']} {row['permission']} {row['operation']}"
            return f"{what} on {resource} from {row['host']}"
        case _:
            return " ".join(str(row[column]) for column in KEYS[table])
