"""Retention on logs of brokers that ran it every second: what they left must stay, and no more.

Rules: F160 to F169. Settings are the topics' own, from `__cluster_metadata` or ZooKeeper.
"""

import json
from pathlib import Path

import pytest

from kafkalog.inspection.metadata.recorded_configs import metadata_configs
from kafkalog.inspection.partitions.retention_plan import retention_rows
from kafkalog.inspection.zookeeper.cluster_trees import zookeeper_configs
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.views.options.config_files import ConfigSources
from tests.support.repository import Unpack

# The brokers ran with it, for most timestamps in the fixtures are years old.
SERVER = "log.retention.ms=-1\n"
STOPPED_MS = 1_795_250_000_000
KRAFT = ("kafka44", "tiered43")
RETAINED = [
    ("kafka44", "shop.retention.bytes", 81_920),
    ("kafka39zk", "zk.retention.bytes", 81_920),
    ("kafka010", "old.retained", 40_000),
]


def planned(unpacked: Unpack, name: str, server_properties: Path) -> list[dict[str, object]]:
    logs = unpacked(f"{name}.logs")
    dirs = sorted({str(path.parent) for path in logs.rglob("meta.properties")})
    found = find_partitions(dirs)
    zookeeper = () if name in KRAFT else (str(unpacked(f"{name}.zookeeper") / "zookeeper-live"),)
    configs = ConfigSources(str(server_properties), zookeeper=zookeeper).of_logs(found)
    return [
        {"topic": log.topic, **row}
        for log in found
        for row in retention_rows(log, configs(log).retention(log.topic), STOPPED_MS)
    ]


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """The broker's file."""
    path = tmp_path / "server.properties"
    path.write_text(SERVER)
    return path


@pytest.mark.parametrize(("name", "zookeeper"), [("kafka44", ""), ("kafka39zk", "zookeeper-live")])
def test_settings_on_disk_are_those_that_the_broker_told(
    name: str, zookeeper: str, unpacked: Unpack
) -> None:
    # F169
    answers = json.loads((unpacked(f"{name}.golden") / "admin.json").read_text())
    if zookeeper:
        recorded = zookeeper_configs([str(unpacked(f"{name}.zookeeper") / zookeeper)], {None})
    else:
        logs = find_partitions([str(unpacked(f"{name}.logs") / "log-dirs")])
        (recorded,) = metadata_configs(logs).values()
    assert recorded is not None
    own = {topic: settings for topic, settings in recorded.topics.items() if settings}
    assert own == answers["topic_configs_not_default"]


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk", "kafka010"])
def test_nothing_goes_that_a_broker_left(name: str, unpacked: Unpack, server: Path) -> None:
    rows = planned(unpacked, name, server)
    assert len(rows) > 30
    assert [row for row in rows if row["goes"]] == []
    assert {row["topic"] for row in rows if row["goes"] is None} <= {
        "__cluster_metadata",
        "__consumer_offsets",
    }


@pytest.mark.parametrize(("name", "topic", "limit"), RETAINED)
def test_a_broker_left_as_little_as_the_size_allows(
    name: str, topic: str, limit: int, unpacked: Unpack, server: Path
) -> None:
    rows = [row for row in planned(unpacked, name, server) if row["topic"] == topic]
    sizes = [int(str(row["bytes"])) for row in rows]
    assert {(row["retention_bytes"], row["retention_bytes_from"]) for row in rows} == {
        (limit, "metadata" if name in KRAFT else "zookeeper")
    }
    # The broker deleted some, and would have deleted the oldest if it had not needed it.
    assert int(str(rows[0]["segment_base_offset"])) > 0
    assert sum(sizes) >= limit > sum(sizes[1:])


@pytest.mark.parametrize(
    ("name", "topic", "end"),
    [("kafka44", "shop.retention.all", 900), ("kafka39zk", "zk.retention.all", 360)],
)
def test_of_a_log_whose_time_is_over_an_empty_segment_is_left(
    name: str, topic: str, end: int, unpacked: Unpack, server: Path
) -> None:
    # F164: the active segment went too, and the new one begins at the log end.
    rows = planned(unpacked, name, server)
    (row,) = [row for row in rows if row["topic"] == topic]
    assert (row["segment_base_offset"], row["bytes"]) == (end, 0)
    assert (row["goes"], row["reason"], row["retention_ms"]) == (False, "empty_active", 2000)


def test_a_tiered_broker_kept_of_uploaded_logs_what_its_local_limit_needs(
    unpacked: Unpack, server: Path
) -> None:
    # F166: of each log the last segment is left, everything below it is uploaded and gone.
    golden = unpacked("tiered43.golden")
    said = (golden / "tools" / "get_offsets_time-5.txt").read_text().split()
    remote = dict(line.rsplit(":", 1) for line in said)
    rows = planned(unpacked, "tiered43", server)
    tiered = [row for row in rows if row["is_tiered"]]
    found = {
        Path(str(row["file"])).parent.name: (
            row["segment_base_offset"],
            row["retention_bytes"],
            row["goes"],
        )
        for row in tiered
    }
    assert found == {
        name.replace(":", "-"): (int(offset) + 1, 1000, False) for name, offset in remote.items()
    }
    # Without it less than the limit would be left.
    assert {row["reason"] for row in tiered} == {"within_limits"}
