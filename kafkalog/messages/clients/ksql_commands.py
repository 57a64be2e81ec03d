"""The command topic of ksqlDB: the statements of all its servers, one after another.

Rule: docs/format.md F1255.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kafkalog.format.secret_configs import HIDDEN, shown_config

_TOPIC = re.compile(r"_confluent-ksql-(?P<service>.*)_command_topic", re.DOTALL)
_ALL_QUERIES = "ALL"
# As Python values JSON takes many times its bytes; servers write much smaller records.
_LARGEST_VALUE = 8 * 1024 * 1024
# A name and a value in a statement, such as 'connection.password' = 'x'; a quote in them is two.
_PROPERTY = re.compile(
    r"""(?P<name>'(?:[^']|'')*'|"[^"]*"|`[^`]*`|[A-Za-z_][\w.]*)(?P<is>\s*=\s*)'(?P<value>(?:[^']|'')*)'"""
)
_CREATE, _DROP, _TERMINATE = "create", "drop", "terminate"
# Of statements that servers carry out when they start.
IN_FORCE = ("in force", "without query")
# A column of a condition, or options that name no secret.
_PLAIN_NAMES = ("key", "key_format", "key_schema_id", "key_schema_full_name")
_PROPERTIES = ("streamsProperties", "originalProperties")


class KsqlCommand(NamedTuple):
    """A command: what its key says (the kind and name of what it is about, and the action), the
    statement and its properties, secrets hidden, and of its plan the sources, the sink, the query
    and whether it makes a source; `version` is None before ksqlDB had one."""

    kind: str
    name: str
    action: str
    statement: str | None
    properties: dict[str, str]
    query_id: str | None
    sources: list[str]
    sink: str | None
    makes_source: bool
    version: int | None

    @property
    def entity(self) -> str:
        """The name without the quotes that some commands have."""
        return self.name.strip("`")


def ksql_service(topic: str) -> str | None:
    """Return the ksql.service.id of the servers whose command topic this is; None for others."""
    found = _TOPIC.fullmatch(topic)
    return None if found is None else found["service"]


def read_ksql_command(key: bytes | None, value: bytes | None) -> KsqlCommand | None:
    """Return a command, None for bytes of another form."""
    identity, content = _json(key), _json(value)
    parts = identity.rsplit("/", 1) if isinstance(identity, str) else []
    front = parts[0].split("/", 1) if parts else []
    if len(parts) != 2 or len(front) != 2 or not isinstance(content, dict):
        return None
    _hide_secrets(content)
    statement, version = content.get("statement"), content.get("version")
    plan = _fields(content.get("plan"))
    query = _fields(plan.get("queryPlan"))
    return KsqlCommand(
        *(front[0], front[1], parts[1]),
        statement if isinstance(statement, str) else None,
        {name: str(each) for name, each in _fields(content.get(_PROPERTIES[0])).items()},
        _name(query.get("queryId")),
        sorted(str(each) for each in _list(query.get("sources"))),
        _name(query.get("sink")),
        bool(plan.get("ddlCommand")),
        version if type(version) is int else None,
    )


def command_states(commands: Iterable[KsqlCommand]) -> list[str | None]:
    """Return what became of each command, in the order of the topic: `in force`, `replaced`,
    `dropped`, `terminated`, or `without query` where the source is left and its query has ended;
    None for commands that end others."""
    states: list[str | None] = []
    sources: dict[str, int] = {}
    queries: dict[str, int] = {}
    every = [*commands]

    def end(row: int | None, state: str) -> None:
        if row is not None and states[row] in IN_FORCE:
            states[row] = state

    for row, command in enumerate(every):
        states.append(IN_FORCE[0] if command.action == _CREATE else None)
        is_insert = command.query_id is not None and not command.makes_source
        if command.action == _CREATE:
            if not is_insert:
                end(sources.get(command.entity), "replaced")
                sources[command.entity] = row
            if command.query_id is not None:
                end(queries.get(command.query_id), "replaced")
                queries[command.query_id] = row
        elif command.action == _DROP:
            end(sources.pop(command.entity, None), "dropped")
        elif command.kind == _TERMINATE:
            ended = [*queries] if command.entity == _ALL_QUERIES else [command.entity]
            for query in ended:
                place = queries.pop(query, None)
                if place is not None:
                    end(place, IN_FORCE[1] if every[place].makes_source else "terminated")
    return states


def without_ksql_secrets(value: bytes) -> bytes:
    """Return the value of a command with *** in place of secrets; one of another form unchanged."""
    content = _json(value)
    if not isinstance(content, dict) or not _hide_secrets(content):
        return value
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def _hide_secrets(content: dict[str, Any]) -> bool:
    """Hide secrets in statements and properties; return whether there was one."""
    before = json.dumps(content)
    plan = content.get("plan")
    for place, name in ((content, "statement"), (plan, "statementText")):
        if isinstance(place, dict) and isinstance(place.get(name), str):
            place[name] = _PROPERTY.sub(_shown_property, place[name])
    for name in _PROPERTIES:
        properties = content.get(name)
        if isinstance(properties, dict):
            for each, value in properties.items():
                if isinstance(value, str):
                    properties[each] = shown_config(each, value)
    return json.dumps(content) != before


def _shown_property(found: re.Match[str]) -> str:
    name, value = found["name"].strip("'\"`"), found["value"]
    if name.lower() in _PLAIN_NAMES or shown_config(name, value) != HIDDEN:
        return found[0]
    return f"{found['name']}{found['is']}'{HIDDEN}'"


def _json(data: bytes | None) -> Any:
    if data is None or len(data) > _LARGEST_VALUE:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _fields(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) else None
