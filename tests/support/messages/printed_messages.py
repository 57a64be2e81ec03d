"""Records of internal topics as kafka-dump-log prints them."""

import re

from kafkalog.messages.internal_records import InternalRecord
from kafkalog.messages.rendering import key_json, value_json
from kafkalog.messages.schema import Values

# The line of a record: its offset, and what follows the fields that any record has.
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
PARTITION_STATES = [f"DELETE_PARTITION_{step}" for step in ("MARKED", "STARTED", "FINISHED")]
SEGMENT = "segmentLeaderEpochs segmentSizeInBytes customMetadata state txnIdxEmpty"
REMOTE_FIELDS = {
    "RemoteLogSegmentMetadata": (
        "remoteLogSegmentId startOffset endOffset brokerId maxTimestampMs eventTimestampMs "
        + SEGMENT
    ),
    "RemoteLogSegmentMetadataUpdate": (
        "remoteLogSegmentId customMetadata state eventTimestampMs brokerId"
    ),
    "RemotePartitionDeleteMetadata": "topicPartition state eventTimestampMs brokerId",
    "RemoteLogSegmentMetadataSnapshot": "segmentId startOffset endOffset maxTimestampMs " + SEGMENT,
}


def as_printed(record: InternalRecord, *, transactions_as_text: bool = False) -> str:
    """What kafka-dump-log prints behind the fields that it prints of any record; before 4.0 a
    transaction is not JSON."""
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
    fields = (f"{label}={remote_field(label, value)}" for label in REMOTE_FIELDS[name].split())
    return f"{name}{{{', '.join(fields)}}}"


def remote_field(label: str, value: Values) -> str:
    """A field in the words of Java."""
    if label == "remoteLogSegmentId":
        identity = value[label]
        place = topic_id_partition(identity["topicIdPartition"])
        return f"RemoteLogSegmentId{{topicIdPartition={place}, id={identity['id']}}}"
    if label == "topicPartition":
        return topic_id_partition(value["topicIdPartition"])
    if label == "state" and "remotePartitionDeleteState" in value:
        return PARTITION_STATES[value["remotePartitionDeleteState"]]
    if label == "state":
        return SEGMENT_STATES[value["remoteLogSegmentState"]]
    if label == "segmentLeaderEpochs":
        epochs = ", ".join(f"{epoch['leaderEpoch']}={epoch['offset']}" for epoch in value[label])
        return f"{{{epochs}}}"
    if label == "customMetadata":
        custom = value[label]
        held = f"Optional[CustomMetadata{{{len(custom or b'')} bytes}}]"
        return "Optional.empty" if custom is None else held
    return str(value["txnIndexEmpty"]).lower() if label == "txnIdxEmpty" else str(value[label])


def topic_id_partition(value: Values) -> str:
    return f"{value['id']}:{value['name']}-{value['partition']}"
