"""The small file that says how a log directory's broker stopped. Rule: docs/format.md F83."""

from __future__ import annotations

import json

from kafkalog.errors import CorruptDataError


def read_clean_shutdown(text: str) -> int | None:
    """Return the epoch of the broker that stopped, from `.kafka_cleanshutdown`; None in the empty
    file of older brokers. Raises CorruptDataError, which does not make the stop less clean: the
    file's being there is what counts.
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
        raise CorruptDataError("version", f"version {str(version)[:80]!r}, known is 0", position=1)
    return epoch


def write_clean_shutdown(broker_epoch: int | None) -> str:
    """Return the file's text."""
    if broker_epoch is None:
        return ""
    content = {"version": 0, "brokerEpoch": broker_epoch}
    return json.dumps(content, separators=(",", ":"))
