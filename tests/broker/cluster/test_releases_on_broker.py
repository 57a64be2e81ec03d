"""Directories of one release, started by others: what kafkalog says of them, and what they do."""

from pathlib import Path

import pytest

from kafkalog.coordination.metadata.image import END
from kafkalog.coordination.metadata.release_refusals import Effect, Refusal, Refused, refusals
from kafkalog.coordination.metadata.releases import known_release
from kafkalog.inspection.metadata.metadata_log import MetadataLog
from kafkalog.inspection.metadata.replay import image_at
from kafkalog.inspection.metadata.seen_records import seen_records
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import CLUSTER_METADATA
from tests.support.broker.java_tools import run_tool
from tests.support.broker.kafka_server import KafkaServer, ServerError

pytestmark = pytest.mark.deep

TOPIC = "releases"


def ending(work_dir: Path, kafka_version: str) -> list[Refusal]:
    """Return what ends this version, by the metadata of a cluster."""
    paths = [str(work_dir / "metadata")]
    logs = find_partitions(paths, needed=CLUSTER_METADATA)
    (log,) = (MetadataLog(log) for log in logs if log.topic == CLUSTER_METADATA)
    seen = seen_records(log.entries(log.start_offset))
    found = refusals(image_at(log, END).image, known_release(kafka_version), seen)
    return [each for each in found if each.effect is Effect.ENDS]


def written_by(work_dir: Path, kafka_version: str, config: str | None = None) -> None:
    """Write a directory with a topic; tools of later releases refuse configs of earlier ones."""
    with KafkaServer(work_dir, kafka_version=kafka_version) as server:
        server.create_topic(TOPIC)
        if config is not None:
            run_tool(
                "kafka.admin.ConfigCommand",
                [
                    *("--bootstrap-server", server.bootstrap, "--alter", "--add-config", config),
                    *("--entity-type", "topics", "--entity-name", TOPIC),
                ],
                jars="broker",
                kafka_version=kafka_version,
            )


def why_it_ends(work_dir: Path, kafka_version: str) -> str | None:
    """Start a version; return the end of its log, None if it serves."""
    try:
        with KafkaServer(work_dir, kafka_version=kafka_version):
            return None
    except ServerError as error:
        return str(error)


def test_small_segments_end_brokers_from_4_1_on(tmp_path: Path) -> None:
    # F1013 and F1016: of a topic; until 4.0 they are taken.
    work_dir = tmp_path / "kafka"
    written_by(work_dir, "4.0.1", "segment.bytes=300")
    assert ending(work_dir, "4.0.1") == []
    assert why_it_ends(work_dir, "4.0.1") is None
    for kafka_version in ("4.1.1", "4.4.0"):
        (found,) = ending(work_dir, kafka_version)
        assert found.subject == f"topic {TOPIC}: segment.bytes=300"
        said = why_it_ends(work_dir, kafka_version)
        assert said is not None
        assert "Invalid value 300 for configuration segment.bytes" in said


def test_an_upgrade_starts(tmp_path: Path) -> None:
    # F1010 to F1016: no false alarm.
    work_dir = tmp_path / "kafka"
    written_by(work_dir, "4.0.1")
    for kafka_version in ("4.1.1", "4.4.0"):
        assert ending(work_dir, kafka_version) == []
        assert why_it_ends(work_dir, kafka_version) is None


@pytest.mark.parametrize(
    ("written", "started", "kind"),
    [
        ("4.4.0", "4.3.1", Refused.METADATA_VERSION),
        ("4.3.1", "4.2.1", Refused.RECORD_VERSION),
        ("4.1.1", "4.0.1", Refused.METADATA_VERSION),
    ],
)
def test_a_downgrade_ends(written: str, started: str, kind: Refused, tmp_path: Path) -> None:
    # F1014 and F1015.
    work_dir = tmp_path / "kafka"
    written_by(work_dir, written)
    assert kind in {each.kind for each in ending(work_dir, started)}
    assert ending(work_dir, written) == []
    assert why_it_ends(work_dir, started) is not None
