"""A real broker goes on where `kafkalog free` said that the log would begin."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.broker.consumed_rows import row_of
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.prepared_cluster import (
    INDEX_INTERVAL_BYTES,
    TOPIC,
    complaints,
    lines_about,
    prepared_cluster,
)
from tests.support.logs.damageable_logs import SampleLog

pytestmark = pytest.mark.deep


def test_the_log_begins_where_the_step_said_and_has_all_the_rest(tmp_path: Path) -> None:
    # F1158
    cluster = prepared_cluster(tmp_path / "kafka", 1, {"retention.ms": "-1"})
    log = SampleLog(time.time_ns() // 1_000_000)
    for segment in range(3):
        if segment:
            log.roll()
        for _ in range(5):
            log.add(5)
    log.write(tmp_path / "made-0", INDEX_INTERVAL_BYTES)
    cluster.fill(0, tmp_path / "made-0")
    result = CliRunner().invoke(
        kafkalog,
        ["free", str(cluster.log_dir), "--need", "1", "--format", "json", "--processes", "1"],
    )
    steps = [json.loads(line) for line in result.stdout.splitlines()]
    (step,) = [step for step in steps if step["topic"] == TOPIC]
    for command in step["commands"]:
        subprocess.run(command, shell=True, check=True)
    with KafkaServer(cluster.work_dir, cluster.log_dir) as server:
        starts = server.offsets(TOPIC, "earliest")
        received = server.consume_all(TOPIC)
        text = server.log_text()
    assert starts == {0: step["start_offset_after"]}
    assert received == [
        row_of(0, record)
        for batch in log.batches
        for record in batch.records
        if record.offset >= step["start_offset_after"]
    ]
    assert complaints(lines_about(text, 0)) == []
