"""The features that the records in brokers' internal topics need, where no copy of the metadata
says which a cluster had. Rule: docs/format.md F923.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.coordination.metadata.releases import (
    GROUP_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)
from kafkalog.inspection.logs.replica_facts import live_replicas
from kafkalog.messages.catalog import topic_family
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.renamed_files import opened_segment

# By the beginning of the names of a group coordinator's records.
_OF_GROUPS = {
    "ConsumerGroup": GROUP_VERSION,
    "ShareGroup": SHARE_VERSION,
    "StreamsGroup": STREAMS_VERSION,
}


def needed_features(logs: Sequence[PartitionLog]) -> dict[str, int]:
    """Return the least levels of features by the records in `__consumer_offsets` and
    `__transaction_state`, and by there being a `__share_group_state`. Of each partition one replica
    is read; damage is passed over."""
    needed: dict[str, int] = {}
    for log in (replicas[0] for replicas in live_replicas(logs)):
        if log.topic == SHARE_GROUP_STATE:
            needed[SHARE_VERSION] = 1
        elif log.topic == CONSUMER_OFFSETS:
            needed.update(dict.fromkeys(_of_groups(log), 1))
        elif log.topic == TRANSACTION_STATE and any(map(bool, _first_numbers(log, "value"))):
            # Values have a version above 0 since this one.
            needed[TRANSACTION_VERSION] = 1
    return needed


def _of_groups(log: PartitionLog) -> Iterator[str]:
    types = topic_family(CONSUMER_OFFSETS).record_types
    for number in _first_numbers(log, "key"):
        name = types[number].name if number in types else ""
        for beginning, feature in _OF_GROUPS.items():
            if name.startswith(beginning):
                yield feature


def _first_numbers(log: PartitionLog, column: str) -> set[int]:
    """Return the numbers, int16, that the keys or values of a log begin with."""
    found: set[int] = set()
    for segment in log.segments:
        with opened_segment(segment) as file:
            options = SegmentOptions.of(segment)
            records = SegmentRecords(FileWindow(file), options, (column,), {}, _passed)
            for batch in records.rows():
                found |= _beginnings(batch.column(column))
    return found


def _beginnings(values: pa.Array) -> set[int]:
    first = pc.unique(pc.binary_slice(values.drop_null(), 0, 2))
    return {int.from_bytes(each, "big") for each in first.to_pylist() if len(each) == 2}


def _passed(damage: FaultyRange) -> None:
    """Do nothing about damage: other records name the same features."""
