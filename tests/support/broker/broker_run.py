"""One pass through a real broker, and what is known of it afterwards.

The broker starts, creates the topics and writes one of them itself; it stops, and gets segments
that kafkalog wrote for the others; it starts again, as after a crash, and serves them.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafkalog.format.segment_writer import SegmentFiles
from tests.support.broker.appended_log import APPENDED_TOPIC, AppendedLog, append_log, hand_over
from tests.support.broker.consumed_rows import ConsumedRow
from tests.support.broker.kafka_server import PRODUCED_NULL, KafkaServer
from tests.support.broker.partition_files import demand_recovery, replace_segments, write_segments
from tests.support.broker.producer_perf import produce
from tests.support.broker.written_partitions import (
    LEGACY_PARTITIONS,
    V2_PARTITIONS,
    WrittenPartition,
)

V2_TOPIC = "kafkalog-v2"
LEGACY_TOPIC = "kafkalog-legacy"
DAMAGED_TOPIC = "kafkalog-damaged"
PRODUCED_TOPIC = "kafkalog-produced"
WRITTEN = {V2_TOPIC: V2_PARTITIONS, LEGACY_TOPIC: LEGACY_PARTITIONS}
# The records of a partition as a consumer receives them, by its topic and number.
Received = dict[tuple[str, int], list[ConsumedRow]]
# What is left of the damaged partition: its first segment and one batch of the second.
DAMAGED_END_OFFSET = 165
_UNCOMPRESSED_RECORDS = 1000
_COMPRESSIONS = ("gzip", "snappy", "lz4", "zstd")
_LINES_EACH = 60
PRODUCED_RECORDS = _UNCOMPRESSED_RECORDS + len(_COMPRESSIONS) * _LINES_EACH


@dataclass(frozen=True, slots=True)
class WrittenAt:
    """A partition that kafkalog wrote and its place in the cluster."""

    topic: str
    partition: int
    written: WrittenPartition

    def __str__(self) -> str:
        return self.written.name


ALL_WRITTEN = tuple(
    WrittenAt(topic, partition, written)
    for topic, partitions in WRITTEN.items()
    for partition, written in enumerate(partitions)
)


@dataclass(frozen=True, slots=True)
class BrokerRun:
    """A broker that serves all topics, and directories that it does not touch.

    `written` has a directory of files as kafkalog wrote them for each partition, by the
    partition's name; `produced` is a log directory with what the broker wrote; `appended` is what
    was written batch by batch.
    """

    server: KafkaServer
    written: Path
    produced: Path
    appended: AppendedLog


@contextmanager
def broker_run(work_dir: Path) -> Iterator[BrokerRun]:
    """The whole pass; the broker serves until the context ends."""
    written, produced = work_dir / "written", work_dir / "produced"
    for place in ALL_WRITTEN:
        (written / str(place)).mkdir(parents=True)
        write_segments(written / str(place), place.written.segments)
    with KafkaServer(work_dir / "kafka") as server:
        _create_topics(server)
        _produce(server)
    name = f"{PRODUCED_TOPIC}-0"
    shutil.copytree(server.log_dir / name, produced / name)
    for place in ALL_WRITTEN:
        replace_segments(server.log_dir, place.topic, place.partition, place.written.segments)
    replace_segments(server.log_dir, DAMAGED_TOPIC, 0, _damaged_segments())
    demand_recovery(server.log_dir)
    appended = append_log(work_dir / "appended")
    hand_over(appended, server.log_dir)
    with server:
        yield BrokerRun(server, written, produced, appended)


def _create_topics(server: KafkaServer) -> None:
    for topic, partitions in WRITTEN.items():
        server.create_topic(topic, len(partitions))
    server.create_topic(DAMAGED_TOPIC)
    server.create_topic(PRODUCED_TOPIC)
    server.create_topic(APPENDED_TOPIC)


def _produce(server: KafkaServer) -> None:
    """Records of every codec, each sent by a producer of its own."""
    produce(server, PRODUCED_TOPIC, 100, _UNCOMPRESSED_RECORDS, "none")
    lines = [
        f"twice:{index},twice:,null:{PRODUCED_NULL}\tkey-{index}\t{'välue ' * index}"
        for index in range(_LINES_EACH - 2)
    ]
    lines += ["\t".join([PRODUCED_NULL] * 3), f"größe:Ω\t\t{PRODUCED_NULL}"]
    for compression in _COMPRESSIONS:
        server.produce_lines(PRODUCED_TOPIC, ("\n".join(lines) + "\n").encode(), compression)


def _damaged_segments() -> list[SegmentFiles]:
    first, second, *rest = V2_PARTITIONS[0].segments
    log = bytearray(second.log)
    log[20_000] ^= 1
    broken = SegmentFiles(second.base_offset, bytes(log), second.index, second.timeindex)
    return [first, broken, *rest]
