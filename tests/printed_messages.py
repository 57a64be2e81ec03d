"""Records of internal topics as kafka-dump-log prints them."""

from __future__ import annotations

import json
import re

from kafkalog.messages.internal_records import InternalRecord
from kafkalog.messages.rendering import key_json, value_json
from kafkalog.messages.schema import Values

# The line of a record: its offset, and what stands behind the fields that any record has.
LINE = re.compile(
    r"\| offset: (\d+) .*?(?:headerKeys: \[\]|isValid: true crc: \d+) ?(.*)", re.DOTALL
)
CONTROL_NAMES = {
    "LEADER_CHANGE": "LeaderChange: ",
    "SNAPSHOT_HEADER": "SnapshotHeader ",
    "SNAPSHOT_FOOTER": "SnapshotFooter ",
    "KRAFT_VERSION": "KRaftVersion ",
    "KRAFT_VOTERS": "KRaftVoters ",
}
TRANSACTION_STATES = [
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
]
SEGMENT_STATES = [
    f"{action}_SEGMENT_{end}" for action in ("COPY", "DELETE") for end in ("STARTED", "FINISHED")
]


def as_printed(record: InternalRecord, *, transactions_as_text: bool = False) -> str:
    """What kafka-dump-log prints behind the fields that it prints of any record; before 4.0 a
    transaction is no JSON."""
    assert record.reason is None
    if record.is_control:
        return control_as_printed(record)
    if record.key is None:
        return f"payload: {metadata_as_printed(record)}"
    if record.name == "TransactionLog" and transactions_as_text:
        return transaction_as_printed(record.key, record.value or {})
    key = f'{{"type":"{record.record_type}","data":{key_json(record)}}}'
    value = f'{{"version":"{record.value_version}","data":{value_json(record)}}}'
    return f"key: {key} payload: {'<DELETE>' if record.is_tombstone else value}"


def control_as_printed(record: InternalRecord) -> str:
    if record.name in ("ABORT", "COMMIT"):
        epoch = (record.value or {})["coordinatorEpoch"]
        return f"endTxnMarker: {record.name} coordinatorEpoch: {epoch}"
    return CONTROL_NAMES[str(record.name)] + str(value_json(record))


def metadata_as_printed(record: InternalRecord) -> str:
    if str(record.name).startswith("Remote"):
        return remote_as_printed(str(record.name).removesuffix("Record"), record.value or {})
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(record.name)).upper()
    shown = value_json(record, show_secrets=True)
    return f'{{"type":"{name}","version":{record.value_version},"data":{shown}}}'


def transaction_as_printed(key: Values, value: Values) -> str:
    partitions = ",".join(
        f"{entry['topic']}-{partition}"
        for entry in value["transactionPartitions"] or ()
        for partition in entry["partitionIds"]
    )
    return (
        f"key: transaction_metadata::transactionalId={key['transactionalId']} "
        f"payload: producerId:{value['producerId']},producerEpoch:{value['producerEpoch']},"
        f"state={TRANSACTION_STATES[value['transactionStatus']]},partitions=[{partitions}],"
        f"txnLastUpdateTimestamp={value['transactionLastUpdateTimestampMs']},"
        f"txnTimeoutMs={value['transactionTimeoutMs']}"
    )


def remote_as_printed(name: str, value: Values) -> str:
    segment = value["remoteLogSegmentId"]
    partition = segment["topicIdPartition"]
    place = f"{partition['id']}:{partition['name']}-{partition['partition']}"
    identity = f"RemoteLogSegmentId{{topicIdPartition={place}, id={segment['id']}}}"
    state = SEGMENT_STATES[value["remoteLogSegmentState"]]
    assert value["customMetadata"] is None
    fields = {"remoteLogSegmentId": identity, "customMetadata": "Optional.empty", "state": state}
    if name == "RemoteLogSegmentMetadataUpdate":
        return java_text(name, fields, value, "eventTimestampMs", "brokerId")
    epochs = ", ".join(f"{e['leaderEpoch']}={e['offset']}" for e in value["segmentLeaderEpochs"])
    return java_text(
        name,
        {"remoteLogSegmentId": identity},
        value,
        *("startOffset", "endOffset", "brokerId", "maxTimestampMs", "eventTimestampMs"),
    ).removesuffix("}") + (
        f", segmentLeaderEpochs={{{epochs}}}, segmentSizeInBytes={value['segmentSizeInBytes']}, "
        f"customMetadata=Optional.empty, state={state}, "
        f"txnIdxEmpty={json.dumps(value['txnIndexEmpty'])}}}"
    )


def java_text(name: str, fields: dict[str, str], value: Values, *names: str) -> str:
    shown = {**fields, **{field: str(value[field]) for field in names}}
    return f"{name}{{{', '.join(f'{field}={text}' for field, text in shown.items())}}}"
