"""Records of internal topics, and control records, as kafka-dump-log words them.

Rules: docs/command-line.md F583, docs/format.md F193.
"""

from __future__ import annotations

import re

from kafkalog.messages.internal_records import InternalRecord
from kafkalog.messages.rendering import key_json, value_json

_DELETED = "<DELETE>"
_MARKERS = ("ABORT", "COMMIT")
# The separator between the name of a control record and its contents.
_CONTROL_LABELS = {
    "LEADER_CHANGE": "LeaderChange: ",
    "SNAPSHOT_HEADER": "SnapshotHeader ",
    "SNAPSHOT_FOOTER": "SnapshotFooter ",
    "KRAFT_VERSION": "KRaftVersion ",
    "KRAFT_VOTERS": "KRaftVoters ",
}


def dumped_key(record: InternalRecord) -> str | None:
    """Return the key as the tool's JSON, None for records without one."""
    data = key_json(record)
    return None if data is None else f'{{"type":"{record.record_type}","data":{data}}}'


def dumped_value(record: InternalRecord, *, show_secrets: bool) -> str | None:
    """Return the value as the tool's JSON; None for a tombstone."""
    data = value_json(record, show_secrets=show_secrets)
    if data is None:
        return None
    if record.key is not None:
        return f'{{"version":"{record.value_version}","data":{data}}}'
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(record.name)).upper()
    return f'{{"type":"{name}","version":{record.value_version},"data":{data}}}'


def control_text(record: InternalRecord) -> str:
    """Return a control record as the tool prints it."""
    if record.reason is not None:
        return f"controlType: {record.name or 'UNKNOWN'}({record.record_type})"
    if record.name in _MARKERS:
        epoch = (record.value or {})["coordinatorEpoch"]
        return f"endTxnMarker: {record.name} coordinatorEpoch: {epoch}"
    return _CONTROL_LABELS.get(str(record.name), f"{record.name} ") + str(value_json(record))


def control_json(record: InternalRecord) -> str:
    """Return a control record as JSON."""
    name = f'"{record.name}"' if record.name else "null"
    data = value_json(record) or "null"
    return f'{{"type":{name},"typeId":{record.record_type or 0},"data":{data}}}'
