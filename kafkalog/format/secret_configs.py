"""Which configs are secrets, by their names. Rule: docs/format.md F194.

Kafka hides configs of type PASSWORD, and those whose type it does not know. Plug-ins have configs
of their own, and a copied log has no types: so a name that could be a secret's counts as one.
"""

from __future__ import annotations

import re

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


def shown_config(name: str, value: str) -> str:
    """Return the value of a config, or HIDDEN where its name is a secret's or a secret is part of
    it."""
    words = _WORD_BORDER.sub(".", name).lower()
    return HIDDEN if _SECRET_NAME.search(words) or _SECRET_VALUE.search(value) else value
