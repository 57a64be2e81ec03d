"""Topics and partitions from the records of the metadata. Rules: F195, F323."""

import pytest

from kafkalog.messages.cluster_metadata import ClusterMetadata
from kafkalog.messages.internal_records import read_internal_record
from kafkalog.messages.record_writer import write_record_value

METADATA = "__cluster_metadata"
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
OTHER_ID = "AQECAwQFBgcICQoLDA0ODw"
THIRD_ID = "AgECAwQFBgcICQoLDA0ODw"
TOPIC, PARTITION, CONFIG, CHANGE, REMOVED = 2, 3, 4, 5, 9
BEGIN, END, ABORT = 23, 24, 25


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


def test_topics_and_leaders_by_metadata() -> None:
    # F323, F195: what is in an aborted transaction, or in one that has not ended, does not count.
    place = {"topicId": TOPIC_ID, "partitionId": 0}
    values = [
        written(TOPIC, name="t", topicId=TOPIC_ID),
        written(PARTITION, **place, leader=1, replicas=[1, 2], isr=[1, 2]),
        written(CHANGE, **place, leader=2),
        written(CHANGE, **place, isr=[2]),
        written(BEGIN),
        written(CHANGE, **place, leader=3),
        written(ABORT),
        written(BEGIN),
        written(TOPIC, name="u", topicId=OTHER_ID),
        written(END),
        written(REMOVED, topicId=OTHER_ID),
        written(CHANGE, **place, leader=-1),
        written(BEGIN),
        written(TOPIC, name="v", topicId=THIRD_ID),
    ]

    def known(count: int) -> tuple[dict[str, str], set[str], dict[int, int]]:
        metadata = ClusterMetadata()
        metadata.take(read_internal_record(METADATA, None, value) for value in values[:count])
        return metadata.names, metadata.deleted, metadata.leaders_of("t")

    assert known(len(values)) == ({TOPIC_ID: "t", OTHER_ID: "u"}, {OTHER_ID}, {0: 2})
    assert known(10) == ({TOPIC_ID: "t", OTHER_ID: "u"}, set(), {0: 2})
    assert known(9) == ({TOPIC_ID: "t"}, set(), {0: 2})
    assert known(2) == ({TOPIC_ID: "t"}, set(), {0: 1})
