"""What the rules for groups and commits return for rows that were written down by hand."""

from collections.abc import Iterable
from typing import Any

from kafkalog.columns.table_rows import table_batch
from kafkalog.coordination.groups.group_records import (
    Group,
    GroupMember,
    GroupRecord,
    LatestRecords,
    group_key,
    group_members,
    known_groups,
)
from kafkalog.inspection.groups.commits_in_effect import COMMIT_COLUMNS, CommitsInEffect
from kafkalog.schemas import table_fields


def plain_commits(rows: tuple[dict[str, Any], ...], at_ms: int | None = None) -> list[Any]:
    """The commits in effect, rows of view `offset_commits`."""
    found = CommitsInEffect(at_ms)
    for row in rows:
        found.add(table_batch("offset_commits", [row], {}, COMMIT_COLUMNS))
    kept = found.rows()
    return [] if kept is None else kept.to_pylist()


def plain_groups(
    records: tuple[dict[str, Any], ...], commits: list[Any], at_ms: int | None = None
) -> tuple[dict[Any, Group], list[GroupMember]]:
    """The groups and their members, by rows of view `group_metadata` and commits in effect."""
    latest = latest_records(records, at_ms)
    members = group_members(latest)
    return known_groups(latest, members, {group_key(row) for row in commits}), members


def latest_records(
    records: Iterable[dict[str, Any]], at_ms: int | None = None
) -> list[GroupRecord]:
    """The rows of view `group_metadata` that count."""
    names = [field["name"] for field in table_fields("group_metadata")]
    found = LatestRecords(at_ms)
    for record in records:
        found.add({name: _with_nulls(name, record.get(name)) for name in names})
    return found.records()


def _with_nulls(name: str, value: Any) -> Any:
    if name != "members" or value is None:
        return value
    nothing = dict.fromkeys(
        ("group_instance_id", "client_id", "client_host", "subscribed_topics", "assigned")
    )
    return [{**nothing, **member} for member in value]
