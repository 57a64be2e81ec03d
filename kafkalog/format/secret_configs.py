"""Which configs are secrets, by their names, and which parts of Kafka Connect's records. Rules:
docs/format.md F194 and F957.

Kafka hides configs of type PASSWORD, and those whose type it does not know. Plug-ins have configs
of their own, and a copied log has no types: so a name that could be a secret's counts as one.
"""

from __future__ import annotations

import json
import re
from typing import Any

# What is shown in place of a secret.
HIDDEN = "***"
_SECRET_NAME = re.compile(
    r"password|passwd|passphrase|passcode|secret|credential|token|jaas|private|certificate"
    r"|assertion|authorization|signature|scram-"
    r"|(api|access|account|shared)[._-]?key|connection[._-]?string|user[._-]?info"
    r"|\b(pass|pwd|keys?|certs?|creds?|sas|sig|salt|hmac|dsn)\b"
)
_SECRET_VALUE = re.compile(
    r"//[^/@\s]*:[^/@\s]*@"
    r"|(password|passwd|pwd|secret|token|credential|apikey|accesskey|accountkey|sig)\s*=",
    re.IGNORECASE,
)
_WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")

_SESSION_KEY = b"session-key"
# Keys begin so: of properties of a connector, or of one of its tasks, and of workers' session keys.
CONNECT_KEYS = (b"connector-", b"task-", _SESSION_KEY)
_PROPERTIES = "properties"
_SESSION_FIELDS = {"key", "algorithm", "creation-timestamp"}
# As Python values JSON takes many times its bytes; workers write much smaller records.
_LARGEST_VALUE = 8 * 1024 * 1024


def shown_config(name: str, value: str) -> str:
    """Return the value of a config, or HIDDEN where its name is a secret's or a secret is part of
    it."""
    words = _WORD_BORDER.sub(".", name).lower()
    return HIDDEN if _SECRET_NAME.search(words) or _SECRET_VALUE.search(value) else value


def without_connect_secrets(key: bytes, value: bytes) -> bytes:
    """Return the value of a record with HIDDEN in place of secrets: unchanged if it has none or is
    not a config of Kafka Connect. The topic can have any name, so records are known by their form.
    """
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
    # These properties of a connector say how keys are written.
    plain = name.replace("key.converter", "converter")
    return shown_config(plain, value) == HIDDEN != value
