"""The small files that say of a whole log directory whose it is and how its broker stopped.

Rules: docs/format.md F82 and F83.
"""

from __future__ import annotations

import json
import re

from kafkalog.errors import CorruptDataError

# The user's documents: at most 22 characters of the URL-safe base64 alphabet.
_CLUSTER_ID = re.compile(r"[a-zA-Z0-9_\-]{1,22}")


def is_cluster_id(text: str) -> bool:
    """Whether a cluster can have this id."""
    return _CLUSTER_ID.fullmatch(text) is not None


def read_clean_shutdown(text: str) -> int | None:
    """The epoch of the broker that stopped, from `.kafka_cleanshutdown`; None in the empty file of
    older brokers. Raises CorruptDataError, which does not make the stop less clean: the file's
    being there is what counts.
    """
    if not text.strip():
        return None
    try:
        content = json.loads(text)
        version, epoch = content["version"], content["brokerEpoch"]
    except (ValueError, TypeError, KeyError, RecursionError):
        detail = f'{text[:80]!r} is not {{"version":0,"brokerEpoch":N}}'
        raise CorruptDataError("malformed", detail, position=1) from None
    if version != 0 or type(epoch) is not int:
        raise CorruptDataError("version", f"version {version!r}, known is 0", position=1)
    return epoch


def write_clean_shutdown(broker_epoch: int | None) -> str:
    """The file's text."""
    if broker_epoch is None:
        return ""
    content = {"version": 0, "brokerEpoch": broker_epoch}
    return json.dumps(content, separators=(",", ":"))
