"""Topics and partitions from the records of the metadata. Rules: F195, F323."""

import pytest

from kafkalog.messages.cluster_metadata import ClusterMetadata
from kafkalog.messages.internal_records import read_internal_record
from kafkalog.messages.record_writer import write_record_value

METADATA = "__cluster_metadata"
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
TOPIC, PARTITION, CONFIG, CHANGE, REMOVED = 2, 3, 4, 5, 9


def written(record_type: int, **fields: object) -> bytes:
    return write_record_value(METADATA, record_type, 0, fields)


@pytest.mark.parametrize("record_type", [TOPIC, PARTITION, CONFIG, CHANGE, REMOVED])
def test_a_record_that_cannot_be_read_says_nothing(record_type: int) -> None:
    values = [
        written(TOPIC, name="orders", topicId=TOPIC_ID),
        written(PARTITION, partitionId=0, topicId=TOPIC_ID, leader=7, replicas=[7], isr=[7]),
        bytes((1, record_type, 0)),  # nothing behind the frame
    ]
    metadata = ClusterMetadata()
    metadata.take(read_internal_record(METADATA, None, value) for value in values)
    assert metadata.leaders_of("orders") == {0: 7}
    assert metadata.configs == {}
