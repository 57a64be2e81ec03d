"""What releases refuse of a cluster's metadata: what ended real brokers, and nothing else."""

from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.coordination.metadata.image import END, START
from kafkalog.coordination.metadata.release_refusals import Effect, Refusal, Refused, refusals
from kafkalog.coordination.metadata.releases import known_release
from kafkalog.inspection.metadata.metadata_log import MetadataLog
from kafkalog.inspection.metadata.replay import MetadataReplay
from kafkalog.inspection.metadata.seen_records import seen_records
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import CLUSTER_METADATA
from tests.support.golden.startup_cases import startup_case_names, startup_cases

_REFUSALS = ("ConfigException: Invalid value", "Unknown metadata id", "Can't read version")
# The metadata itself is damaged or gone here: whether it can be read is another question.
_WITHOUT_WHOLE_METADATA = ("12a", "16a", "24", "51a", "51c")


def found_refusals(folder: Path, kafka_version: str) -> list[Refusal]:
    paths = [str(path) for path in sorted(folder.glob("d[0-9]"))]
    logs = find_partitions(paths, strict=False, needed=CLUSTER_METADATA)
    (log,) = (MetadataLog(log) for log in logs if log.topic == CLUSTER_METADATA)
    replay = MetadataReplay(log, START, END)
    deque(replay.changes(), maxlen=0)
    seen = seen_records(log.entries(log.start_offset))
    return refusals(replay.image, known_release(kafka_version), seen)


@pytest.mark.parametrize(
    "name", [each for each in startup_case_names() if not each.startswith(_WITHOUT_WHOLE_METADATA)]
)
def test_what_ended_a_broker_is_refused(
    name: str, unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    # F1014 to F1016.
    case = startup_cases(unpacked)[name]
    ends = any(each in line for line in case.outcome["decisive_lines"] for each in _REFUSALS)
    ended_by_refusal = ends and not case.outcome["started"]
    folder = case.made_in(tmp_path)
    found = found_refusals(folder, case.kafka_version)
    assert any(each.effect is Effect.ENDS for each in found) == ended_by_refusal, found


EXPECTED = {
    "13-3.9.2-on-4.4.0": (Refused.TOPIC_CONFIG, "topic orders: segment.bytes=300"),
    "40a-topic-config-segment-bytes": (Refused.TOPIC_CONFIG, "topic comp: segment.bytes=300"),
    "65a-metadata-unknown-record": (
        *(Refused.RECORD_TYPE, "record of type 99 at offset 85 of __cluster_metadata"),
    ),
    "41-broker-config-nonsense": (
        *(Refused.BROKER_CONFIG, "broker (all): log.cleaner.threads=abc"),
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_refusal_names_what_it_is_about(
    name: str, unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    # F1013, F1015 to F1017: the line of a broker's log has the same name and value.
    case = startup_cases(unpacked)[name]
    (found,) = found_refusals(case.made_in(tmp_path), case.kafka_version)
    assert (found.kind, found.subject) == EXPECTED[name]
    assert (found.effect is Effect.ENDS) == (not case.outcome["started"])


def test_a_downgrade_names_every_reason(unpacked: Callable[[str], Path], tmp_path: Path) -> None:
    # F1010 to F1015: 3.9.2 ends at a record of version 4; the others would end it, too.
    case = startup_cases(unpacked)["13-4.4.0-on-3.9.2"]
    found = found_refusals(case.made_in(tmp_path), case.kafka_version)
    kinds = [each.kind for each in found if each.effect is Effect.ENDS]
    assert {Refused.METADATA_VERSION, Refused.FEATURE, Refused.RECORD_VERSION} <= set(kinds)
    assert any("RegisterBrokerRecord" in each.subject for each in found)
