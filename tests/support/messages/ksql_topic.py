"""Records of the command topic of ksqlDB, made by hand: Maven Central has no jars of it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

TOPIC = "_confluent-ksql-default__command_topic"


def command(
    identity: str,
    statement: str,
    *,
    query: str | None = None,
    sources: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    is_insert: bool = False,
) -> tuple[str, str]:
    """Return key and value of a command; `identity` is KIND/NAME/ACTION."""
    kind, name, action = identity.split("/")
    plan: dict[str, Any] | None = None
    if kind != "terminate":
        is_drop = action == "drop"
        ddl = {
            "@type": "dropSourceV1" if is_drop else f"create{kind.capitalize()}V1",
            "sourceName": f"`{name.strip('`')}`",
        }
        plan = {
            "@type": "ksqlPlanV1",
            "statementText": statement,
            "ddlCommand": None if is_insert else ddl,
            "queryPlan": None,
        }
        if query is not None:
            plan["queryPlan"] = {
                "sources": list(sources),
                "sink": name.strip("`"),
                "physicalPlan": {"@type": "streamSelectV1", "properties": {}},
                "queryId": query,
            }
    value = {
        "statement": statement,
        "streamsProperties": dict(properties or {}),
        "originalProperties": {"ksql.service.id": "default_"},
        "plan": plan,
        "version": 12,
    }
    return json.dumps(identity), json.dumps(value, separators=(",", ":"))
