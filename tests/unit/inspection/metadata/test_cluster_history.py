"""What a cluster's metadata says, and what its image forgets. Rules: F195, F323."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.metadata.cluster_history import ClusterHistory, cluster_histories
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.messages.record_writer import write_record_value

METADATA = "__cluster_metadata"
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
OTHER_ID = "AQECAwQFBgcICQoLDA0ODw"
THIRD_ID = "AgECAwQFBgcICQoLDA0ODw"
TOPIC, PARTITION, CONFIG, CHANGE, REMOVED = 2, 3, 4, 5, 9
BEGIN, END, ABORT = 23, 24, 25
FIRST_MS = 1_800_000_000_000


def written(record_type: int, **fields: object) -> bytes:
    return write_record_value(METADATA, record_type, 0, fields)


def history(place: Path, values: Sequence[bytes], at_ms: int | None = None) -> ClusterHistory:
    """The history of a log with a record in each batch, one each millisecond."""
    log = place / f"{METADATA}-0" / f"{0:020d}.log"
    log.parent.mkdir(exist_ok=True)
    records = (Record(each, FIRST_MS + each, 0, None, value) for each, value in enumerate(values))
    log.write_bytes(b"".join(write_batch([each], BatchFields(leader_epoch=1)) for each in records))
    logs = find_logs([str(place)], strict=False)
    (found,) = cluster_histories(logs, at_ms).values()
    return found


@pytest.mark.parametrize("record_type", [TOPIC, PARTITION, CONFIG, CHANGE, REMOVED])
def test_a_record_that_cannot_be_read_says_nothing(tmp_path: Path, record_type: int) -> None:
    values = [
        written(TOPIC, name="orders", topicId=TOPIC_ID),
        written(PARTITION, partitionId=0, topicId=TOPIC_ID, leader=7, replicas=[7], isr=[7]),
        bytes((1, record_type, 0)),  # nothing behind the frame
    ]
    found = history(tmp_path, values)
    assert found.leaders_of("orders") == {0: 7}
    assert not found.image.tables["config"]


def test_topics_and_leaders_by_metadata(tmp_path: Path) -> None:
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
        found = history(tmp_path, values, FIRST_MS + count - 1)
        return found.names, found.deleted, found.leaders_of("t")

    assert known(len(values)) == ({TOPIC_ID: "t", OTHER_ID: "u"}, {OTHER_ID}, {0: 2})
    assert known(10) == ({TOPIC_ID: "t", OTHER_ID: "u"}, set(), {0: 2})
    assert known(9) == ({TOPIC_ID: "t"}, set(), {0: 2})
    assert known(2) == ({TOPIC_ID: "t"}, set(), {0: 1})
    now = history(tmp_path, values)
    assert now.created_ms == {TOPIC_ID: FIRST_MS, OTHER_ID: FIRST_MS + 8}
    assert (now.replicas_of("t"), now.in_sync_of("t")) == ({0: [1, 2]}, {0: [2]})
    assert (now.leaders_of("u"), now.replicas_of("u")) == ({}, {})


def test_damage_ends_what_is_known_or_the_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topics = {"t": TOPIC_ID, "u": OTHER_ID}
    history(tmp_path, [written(TOPIC, name=name, topicId=topics[name]) for name in topics])
    (log,) = tmp_path.glob("*/*.log")
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")
    logs = find_logs([str(tmp_path)], strict=False)
    (found,) = cluster_histories(logs).values()
    assert found.names == {TOPIC_ID: "t"}
    assert "what it has changed is not known" in caplog.text
    with pytest.raises(CorruptDataError):
        cluster_histories(logs, strict=True)
