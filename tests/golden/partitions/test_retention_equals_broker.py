"""Retention on logs of brokers that ran it every second: what they left must stay, and no more.

Rules: F160 to F168. Settings are the topics' own as the admin client gave them.
"""

import json
from pathlib import Path

import pytest

from kafkalog.inspection.partitions.retention_plan import retention_rows
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.log_dir.topic_configs import read_topic_configs
from tests.support.repository import Unpack

# The brokers ran with it, for most timestamps in the fixtures are years old.
SERVER = "log.retention.ms=-1\n"
STOPPED_MS = 1_795_250_000_000
RETAINED = [
    ("kafka44", "shop.retention.bytes", 81_920),
    ("kafka39zk", "zk.retention.bytes", 81_920),
    ("kafka010", "old.retained", 40_000),
]


def topic_configs(golden: Path) -> str:
    admin = json.loads((golden / "admin.json").read_text())
    if "topic_configs_not_default" in admin:
        return json.dumps(admin["topic_configs_not_default"])
    # From tools/topics_describe.txt of 0.10.
    return json.dumps({"old.retained": {"retention.bytes": "40000", "segment.bytes": "16384"}})


def planned(logs: Path, configs: str) -> list[dict[str, object]]:
    settings = read_topic_configs(configs, SERVER)
    dirs = sorted({str(path.parent) for path in logs.rglob("meta.properties")})
    return [
        {"topic": log.topic, **row}
        for log in find_partitions(dirs)
        for row in retention_rows(log, settings.retention(log.topic), STOPPED_MS)
    ]


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk", "kafka010"])
def test_nothing_goes_that_a_broker_left(name: str, unpacked: Unpack) -> None:
    rows = planned(unpacked(f"{name}.logs"), topic_configs(unpacked(f"{name}.golden")))
    assert len(rows) > 30
    assert [row for row in rows if row["goes"]] == []
    assert {row["topic"] for row in rows if row["goes"] is None} <= {
        "__cluster_metadata",
        "__consumer_offsets",
    }


@pytest.mark.parametrize(("name", "topic", "limit"), RETAINED)
def test_a_broker_left_as_little_as_the_size_allows(
    name: str, topic: str, limit: int, unpacked: Unpack
) -> None:
    rows = [
        row
        for row in planned(unpacked(f"{name}.logs"), topic_configs(unpacked(f"{name}.golden")))
        if row["topic"] == topic
    ]
    sizes = [int(str(row["bytes"])) for row in rows]
    assert {(row["retention_bytes"], row["retention_bytes_from"]) for row in rows} == {
        (limit, "topic")
    }
    # The broker deleted some, and would have deleted the oldest if it had not needed it.
    assert int(str(rows[0]["segment_base_offset"])) > 0
    assert sum(sizes) >= limit > sum(sizes[1:])


@pytest.mark.parametrize(
    ("name", "topic", "end"),
    [("kafka44", "shop.retention.all", 900), ("kafka39zk", "zk.retention.all", 360)],
)
def test_of_a_log_whose_time_is_over_an_empty_segment_is_left(
    name: str, topic: str, end: int, unpacked: Unpack
) -> None:
    # F164: the active segment went too, and the new one begins at the log end.
    rows = planned(unpacked(f"{name}.logs"), topic_configs(unpacked(f"{name}.golden")))
    (row,) = [row for row in rows if row["topic"] == topic]
    assert (row["segment_base_offset"], row["bytes"]) == (end, 0)
    assert (row["goes"], row["reason"], row["retention_ms"]) == (False, "empty_active", 2000)


def test_a_tiered_broker_kept_of_uploaded_logs_what_its_local_limit_needs(unpacked: Unpack) -> None:
    # F166: of each log the last segment is left, everything below it is uploaded and gone.
    golden = unpacked("tiered43.golden")
    said = (golden / "tools" / "get_offsets_time-5.txt").read_text().split()
    remote = dict(line.rsplit(":", 1) for line in said)
    rows = planned(unpacked("tiered43.logs") / "log-dirs", topic_configs(golden))
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
