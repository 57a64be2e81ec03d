"""Secrets in the configs that Kafka Connect's workers keep in a topic.

The topic has whatever name `config.storage.topic` says, such as connect-configs, so its records are
known by what they are. Rule: docs/format.md F957.
"""

from __future__ import annotations

import json
from typing import Any

from kafkalog.format.secret_configs import HIDDEN, shown_config

_SESSION_KEY = b"session-key"
# Keys begin so: of properties of a connector, or of one of its tasks, and of workers' session keys.
KEY_PREFIXES = (b"connector-", b"task-", _SESSION_KEY)
_PROPERTIES = "properties"
_SESSION_FIELDS = {"key", "algorithm", "creation-timestamp"}
# As Python values JSON takes many times its bytes; workers write much smaller records.
_LARGEST_VALUE = 8 * 1024 * 1024


def without_secrets(key: bytes, value: bytes) -> bytes:
    """Return the value of a record with HIDDEN in place of secrets: as it is where it has none or
    is no config of Connect."""
    if len(value) > _LARGEST_VALUE or not value.lstrip().startswith(b"{"):
        return value
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        return value
    # A converter with schemas wraps what it writes.
    config = content.get("payload", content) if "schema" in content else content
    hide = _hide_session_key if key == _SESSION_KEY else _hide_properties
    if not isinstance(config, dict) or not hide(config):
        return value
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def _hide_session_key(config: dict[str, Any]) -> bool:
    """Hide the key by which workers sign requests to each other; return whether there was one."""
    is_there = config.keys() == _SESSION_FIELDS
    if is_there:
        config["key"] = HIDDEN
    return is_there


def _hide_properties(config: dict[str, Any]) -> bool:
    """Hide the values of secret properties; return whether there was one."""
    properties = config.get(_PROPERTIES)
    if config.keys() != {_PROPERTIES} or not isinstance(properties, dict):
        return False
    secrets = {name for name, value in properties.items() if _is_secret(name, value)}
    properties.update(dict.fromkeys(secrets, HIDDEN))
    return bool(secrets)


def _is_secret(name: str, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    # Of a connector's properties these say how keys are written.
    plain = name.replace("key.converter", "converter")
    return shown_config(plain, value) == HIDDEN != value
