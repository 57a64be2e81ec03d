"""Settings in server.properties that depend on each other: what a node ends at.

Rules: docs/format.md F1187, F1197, F1371 and F1377.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from kafkalog.coordination.metadata.releases import is_at_least
from kafkalog.inspection.start.plugins import ACL_AUTHORIZER, STANDARD_AUTHORIZER
from kafkalog.storage.log_dir.server_properties import ServerProperties

_BROKER_ID = "broker.id"
_VOTERS, _CONTROLLERS = "controller.quorum.voters", "controller.listener.names"
_BOOTSTRAP = "controller.quorum.bootstrap.servers"
_AUTHORIZER = "authorizer.class.name"
_LISTENERS, _ADVERTISED = "listeners", "advertised.listeners"
_PROTOCOLS, _OF_BROKERS = "listener.security.protocol.map", "inter.broker.listener.name"
_REBALANCE = "group.coordinator.rebalance.protocols"
_TIER_LISTENER = "remote.log.metadata.manager.listener.name"
_VOTER = re.compile(r"\s*[0-9]+@.+:[0-9]+\s*")
_LISTENER = re.compile(r"\s*([^:/]+)://(.*):(-?[0-9]+)\s*")
_KNOWN = frozenset(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"))
_MEBIBYTE = 1 << 20
# The first release that a broker of ended at an empty word of log.dirs.
_FIRST_STRICT = "4.2"
_WITHOUT_ZOOKEEPER = "4.0"
# A setting, one that it may not exceed, and Kafka's defaults of both.
_AT_MOST = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms", 500, 30_000),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms", 500, 30_000),
    *(
        pair
        for kind in ("consumer", "share")
        for name, value, most in (
            ("session.timeout.ms", 45_000, 60_000),
            ("heartbeat.interval.ms", 5000, 15_000),
        )
        for pair in (
            (f"group.{kind}.min.{name}", f"group.{kind}.{name}", value, value),
            (f"group.{kind}.{name}", f"group.{kind}.max.{name}", value, most),
        )
    ),
)


def related_refusals(server: ServerProperties, release: str) -> Iterator[tuple[str, str, str]]:
    """Yield what a release refuses of settings that depend on each other, or that have no form of
    their own: a setting, why, and what to do."""
    named = server.values.get("log.dirs", "")
    if "" in (word.strip() for word in named.split(",")) and is_at_least(release, _FIRST_STRICT):
        yield "log.dirs", "a name in it is empty", "remove the comma too many in server.properties"
    if server.roles:
        yield from _of_quorum(server)
        is_old = server.values.get(_AUTHORIZER, "").strip() == ACL_AUTHORIZER
        # Later releases do not have the class.
        if is_old and not is_at_least(release, _WITHOUT_ZOOKEEPER):
            detail = f"{ACL_AUTHORIZER} asks ZooKeeper, which this node does without"
            yield _AUTHORIZER, detail, f"set {_AUTHORIZER}={STANDARD_AUTHORIZER}"
    yield from _of_listeners(server)
    for name, other, value, most in _AT_MOST:
        found, limit = _number(server, name, value), _number(server, other, most)
        if found is not None and limit is not None and found > limit:
            yield name, f"it is {found}, and {other} is {limit}", f"make {other} as large"
    buffer = _number(server, "log.cleaner.dedupe.buffer.size", 128 * _MEBIBYTE)
    threads = _number(server, "log.cleaner.threads", 1)
    if buffer is not None and threads and buffer // threads <= _MEBIBYTE:
        detail = f"it is {buffer}, and {threads} of log.cleaner.threads need more than 1 MiB each"
        yield "log.cleaner.dedupe.buffer.size", detail, "make it larger, or remove it"
    protocols = server.values.get(_REBALANCE)
    if protocols is not None and "classic" not in protocols.lower():
        yield _REBALANCE, "it does not have classic", f"add classic to {_REBALANCE}"


def _number(server: ServerProperties, name: str, default: int) -> int | None:
    """Return a setting; None for one that is not a number: that is refused by itself."""
    with suppress(ValueError):
        return int(server.values.get(name, default))
    return None


def _of_quorum(server: ServerProperties) -> Iterator[tuple[str, str, str]]:
    """Yield what a node without ZooKeeper refuses. Rules: docs/format.md F1187, F1197 and F1371."""
    for names in server.spellings.values():
        if len(names) > 1:
            detail = f"{' and '.join(names)} are one directory, and a broker takes them for two"
            yield "log.dirs", detail, f"write {names[0]} in all settings of server.properties"
    if server.values.get(_BROKER_ID, str(server.node_id)).strip() != str(server.node_id):
        detail = f"it is {server.values[_BROKER_ID].strip()}, and node.id is {server.node_id}"
        yield _BROKER_ID, detail, f"remove {_BROKER_ID} from server.properties"
    if not server.log_dirs:
        yield "log.dirs", "it names no directory", "name the log directories in server.properties"
    for each in filter(None, server.values.get(_VOTERS, "").split(",")):
        if not _VOTER.fullmatch(each):
            yield _VOTERS, f"{each.strip()!r} is not ID@HOST:PORT", f"write {_VOTERS} in that form"
    if not server.voters and not server.bootstrap_controllers:
        detail = f"neither this nor {_BOOTSTRAP} names a controller"
        yield _VOTERS, detail, f"set {_VOTERS} in server.properties"
    if "controller" in server.roles and server.voters and server.node_id not in server.voters:
        named = ", ".join(map(str, sorted(server.voters)))
        detail = f"it names {named}, and not this controller, node {server.node_id}"
        yield _VOTERS, detail, f"change {_VOTERS} or node.id in server.properties"
    if "controller" not in server.roles and server.node_id in server.voters:
        detail = f"it names node {server.node_id}, which process.roles makes no controller"
        yield _VOTERS, detail, f"change {_VOTERS} or process.roles in server.properties"
    if not server.values.get(_CONTROLLERS, "").strip():
        yield _CONTROLLERS, "it is missing", f"set {_CONTROLLERS} in server.properties"


def _of_listeners(server: ServerProperties) -> Iterator[tuple[str, str, str]]:
    """Yield what a node refuses of its listeners. Rule: docs/format.md F1377."""
    values = server.values
    listeners = [*_listeners(values, _LISTENERS)]
    names = [name for name, _ in listeners]
    controllers = _words(values.get(_CONTROLLERS, ""))
    if not listeners:
        return
    change = f"change {_LISTENERS} in server.properties"
    ports = [port for _, port in listeners if port > 0]
    if len(set(names)) < len(names):
        yield _LISTENERS, "two of them have one name", change
    elif len(set(ports)) < len(ports):
        yield _LISTENERS, "two of them have one port", change
    if "controller" in server.roles and controllers and not set(controllers) & set(names):
        detail = f"it names {', '.join(controllers)}, and {_LISTENERS} have none of them"
        yield _CONTROLLERS, detail, f"change {_CONTROLLERS} or {_LISTENERS} in server.properties"
    known = _protocols(server, names, controllers)
    unknown = [name for name in names if name not in known]
    if unknown:
        detail = f"it has no protocol of listener {', '.join(unknown)}"
        yield _PROTOCOLS, detail, f"set {_PROTOCOLS} in server.properties, or {change}"
    advertised = [name for name, _ in _listeners(values, _ADVERTISED)]
    others = [name for name in advertised if name not in names]
    if others:
        detail = f"{', '.join(others)} is none of {_LISTENERS}"
        yield _ADVERTISED, detail, f"change {_ADVERTISED} in server.properties"
    own = values.get(_OF_BROKERS, "").strip().upper()
    if own and "security.inter.broker.protocol" in values:
        yield _OF_BROKERS, "security.inter.broker.protocol is set, too", "remove one of the two"
    elif own in controllers and "broker" in server.roles:
        yield _OF_BROKERS, f"{own} is one of {_CONTROLLERS}", f"change {_OF_BROKERS}"
    elif own and own not in known:
        detail = f"{own} has no protocol in {_PROTOCOLS}"
        yield _OF_BROKERS, detail, f"change {_OF_BROKERS} in server.properties"
    is_tiered = values.get("remote.log.storage.system.enable", "").strip().lower() == "true"
    of_tier = values.get(_TIER_LISTENER, "").strip()
    served = [name for name in names if name not in controllers]
    if is_tiered and of_tier and of_tier not in served:
        detail = f"{of_tier} is none of the broker's {_LISTENERS}"
        yield _TIER_LISTENER, detail, f"change {_TIER_LISTENER} in server.properties"


def _protocols(
    server: ServerProperties, names: list[str], controllers: list[str]
) -> frozenset[str]:
    """Return the listeners that have a protocol: without a map those with the name of one, and the
    controllers' where all others are PLAINTEXT."""
    given = server.values.get(_PROTOCOLS)
    if given is not None:
        return frozenset(word.rpartition(":")[0].strip().upper() for word in _words(given))
    is_secure = any(name in _KNOWN - {"PLAINTEXT"} for name in (*names, *controllers))
    return _KNOWN if is_secure or not server.roles else _KNOWN.union(controllers)


def _listeners(values: Mapping[str, str], setting: str) -> Iterator[tuple[str, int]]:
    """Yield the names of listeners, and their ports."""
    for word in _words(values.get(setting, "")):
        match = _LISTENER.fullmatch(word)
        if match is not None:
            yield match[1].upper(), int(match[3])


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
