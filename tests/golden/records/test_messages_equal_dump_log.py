"""Every record of every internal topic against what kafka-dump-log's decoders printed of it.

The decoders: offsets, share-group-state and cluster-metadata in all releases at hand,
transaction-log in 4.x as JSON, before that as a line of text; for tiered storage's metadata the
toString of Kafka's own classes.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.format.record_batch import read_batch
from kafkalog.messages.internal_records import (
    InternalRecord,
    read_control_record,
    read_internal_record,
)
from kafkalog.messages.metadata_transactions import records_in_force
from tests.support.logs.plain_reader import read_ranges
from tests.support.messages.printed_messages import LINE, as_printed
from tests.support.repository import Unpack

# Records of internal topics in the files of each set, snapshots of the metadata included.
SETS = {"kafka44": 3369, "kafka39zk": 107, "kafka010": 59, "kafka08": 5, "tiered43": 297}


@pytest.mark.parametrize("name", SETS)
def test_every_record_of_an_internal_topic_is_what_kafka_dump_log_printed(
    name: str, unpacked: Unpack
) -> None:
    # F185 to F190, F192, F193; T19, T36, T39.
    logs, dumped = unpacked(f"{name}.logs"), unpacked(f"{name}.messages")
    compared = 0
    for path in sorted(dumped.rglob("*.txt")):
        printed = [
            match.groups()
            for match in map(LINE.fullmatch, path.read_text().splitlines())
            if match is not None
        ]
        read = list(records(logs / "log-dirs" / path.relative_to(dumped).with_suffix("")))
        shown = [
            (str(offset), as_printed(record, transactions_as_text=name == "kafka39zk"))
            for offset, record in read
        ]
        assert shown == printed, path
        compared += len(printed)
    assert compared == SETS[name]


def test_the_fixtures_hold_most_types_of_records(unpacked: Unpack) -> None:
    seen: Counter[str | None] = Counter()
    for name in SETS:
        for path in sorted((unpacked(f"{name}.logs") / "log-dirs").rglob("__*/*.log")):
            seen.update(record.name for _, record in records(path))
    assert None not in seen
    assert len(seen) == 40


def test_snapshots_of_the_metadata_are_whole_and_all_of_them_is_in_force(unpacked: Unpack) -> None:
    # T40: their offsets begin with 0, and the footer is the last record.
    snapshots = sorted(unpacked("kafka44.logs").rglob("__cluster_metadata-0/*.checkpoint"))
    for path in snapshots:
        offsets, held = zip(*records(path), strict=True)
        assert offsets == tuple(range(len(offsets)))
        assert held[-1].is_control and held[-1].name == "SNAPSHOT_FOOTER"
        in_force = list(records_in_force(held))
        assert [r for r in held if r not in in_force] == [
            r for r in held if r.name in ("BeginTransactionRecord", "EndTransactionRecord")
        ]
    assert len(snapshots) == 11


def test_the_snapshot_that_a_cluster_is_formatted_with_is_read(unpacked: Unpack) -> None:
    # F329: since KAFKA-19648 it has what bootstrap.checkpoint had, as the log itself has later.
    (path,) = unpacked("kafka44.logs").rglob(f"{0:020}-{0:010}.checkpoint")
    held = [record for _, record in records(path)]
    assert [record.reason for record in held] == [None] * 8
    levels = [record.value for record in held if record.name == "FeatureLevelRecord"]
    assert {"name": "metadata.version", "featureLevel": 33} in levels


def records(path: Path) -> Iterator[tuple[int, InternalRecord]]:
    """All records of a log file or snapshot with their offsets."""
    data = path.read_bytes()
    topic = path.parent.name.rpartition("-")[0]
    for part in read_ranges(data):
        assert part.header is not None
        for record in read_batch(data, part.position, expected_offset=part.expected_offset):
            if part.header.is_control:
                yield record.offset, read_control_record(record.key, record.value)
            else:
                yield record.offset, read_internal_record(topic, record.key, record.value)
