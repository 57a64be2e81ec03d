"""The transactions of real brokers' logs, against their transaction indexes, what kafka-dump-log
printed of their batches, and what the Admin client said of their producers."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.inspection.partitions.transactions import view_transaction_rows
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from tests.support.repository import Unpack

SETS = ("kafka44", "kafka39zk")
_ENTRY = re.compile(r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+)")
_PRODUCER = re.compile(
    r"producerId=(\d+), producerEpoch=(\d+), .*currentTransactionStartOffset=OptionalLong\[(\d+)\]"
)


def raised(damage: CorruptDataError) -> None:
    raise damage


def _logs(place: Path) -> list[PartitionLog]:
    return find_partitions(sorted(str(path.parent) for path in place.rglob("meta.properties")))


def _printed(golden: Path, kind: str, log: PartitionLog, suffix: str) -> Iterator[str]:
    for path in sorted((golden / kind).rglob(f"{Path(log.path).name}/*{suffix}")):
        yield from path.read_text().splitlines()


@pytest.mark.parametrize("name", SETS)
def test_aborted_transactions_are_those_of_the_transaction_indexes(
    name: str, unpacked: Unpack
) -> None:
    # F210, F112. The cleaner drops the entries of transactions whose records it removed.
    golden = unpacked(f"{name}.golden")
    seen = 0
    for log in _logs(unpacked(f"{name}.logs")):
        indexed = {
            tuple(map(int, match.groups()))
            for line in _printed(golden, "side_files", log, ".txnindex.txt")
            if (match := _ENTRY.search(line))
        }
        found = {
            (row["producer_id"], row["first_offset"], row["marker_offset"])
            for row in view_transaction_rows(log, None, raised)
            if row["outcome"] == "aborted" and row["first_offset"] is not None
        }
        assert found == indexed, log.name
        seen += len(indexed)
    assert seen > 20


@pytest.mark.parametrize("name", SETS)
def test_every_marker_ends_one_transaction(name: str, unpacked: Unpack) -> None:
    # F210, F215: a control batch without a record is not a marker any more.
    golden = unpacked(f"{name}.golden")
    for log in _logs(unpacked(f"{name}.logs")):
        markers = [
            int(line.split()[1])
            for line in _printed(golden, "batches", log, ".log.txt")
            if "isTransactional: true isControl: true" in line and " count: 1 " in line
        ]
        rows = list(view_transaction_rows(log, None, raised))
        assert [row["marker_offset"] for row in rows if row["outcome"] != "open"] == markers
        data = [
            (int(fields["count:"]), int(fields["size:"]))
            for line in _printed(golden, "batches", log, ".log.txt")
            if "isTransactional: true isControl: false" in line
            for words in [line.split()]
            for fields in [dict(zip(words[::2], words[1::2], strict=False))]
        ]
        assert sum(int(str(row["batches"])) for row in rows) == len(data)
        assert sum(int(str(row["records"])) for row in rows) == sum(count for count, _ in data)
        assert sum(int(str(row["bytes"])) for row in rows) == sum(size for _, size in data)


@pytest.mark.parametrize("name", SETS)
def test_open_transactions_are_those_the_admin_client_described(
    name: str, unpacked: Unpack
) -> None:
    # F210, F214
    told = json.loads((unpacked(f"{name}.golden") / "admin.json").read_text())["producers"]
    expected = {
        (log, *map(int, match.groups()))
        for log, producers in told.items()
        for match in map(_PRODUCER.search, producers)
        if match
    }
    found = {
        (log.name, row["producer_id"], row["producer_epoch"], row["first_offset"])
        for log in _logs(unpacked(f"{name}.logs"))
        for row in view_transaction_rows(log, None, raised)
        if row["outcome"] == "open" and log.name in told
    }
    assert found == expected
    assert expected
