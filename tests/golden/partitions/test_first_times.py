"""When a segment begins, by `kafkalog ls`: with LogAppendTime a producer's time stays in the header
of a batch, and no record has it."""

import json

from click.testing import CliRunner

import kafkalog
from kafkalog.command_line.main import kafkalog as command_line
from tests.support.repository import Unpack

COLUMNS = ["partition", "offset", "timestamp", "timestampType"]
APPEND_TIME = 1


def test_a_segment_with_append_time_begins_at_its_first_record_s_time(unpacked: Unpack) -> None:
    disk = str(unpacked("restore44.logs") / "snapshots" / "node1" / "data")
    given = ["ls", disk, "--topic", "events", "--by", "segment", "--format", "json"]
    said = CliRunner().invoke(command_line, [*given, "--processes", "1"])
    segments = [json.loads(line) for line in said.stdout.splitlines()]
    records = kafkalog.scan(disk, topics="events", columns=COLUMNS).to_table().to_pylist()
    assert {row["timestampType"] for row in records} == {APPEND_TIME}
    times = {(row["partition"], row["offset"]): row["timestamp"] for row in records}
    places = [(each, times.get((each["partition"], each["first_offset"]))) for each in segments]
    compared = [(each, time) for each, time in places if time is not None]
    assert len(compared) > len(segments) // 2
    for each, time in compared:
        assert each["first_timestamp_ms"] == round(time.timestamp() * 1000)
