"""Rows of view `segments` of log directories made by hand. F136, F137."""

import os
from pathlib import Path
from typing import Any

from kafkalog.format.message_set import write_message_set
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.segment_writer import write_segment
from kafkalog.format.side_files.producer_snapshot import ProducerEntry, write_producer_snapshot
from kafkalog.inspection.partitions.segments import segment_rows
from kafkalog.schemas import table_fields
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import log_columns
from kafkalog.wire.compression import CompressionType
from tests.support.logs.log_dirs import add_partition, log_name
from tests.support.logs.samples import batch, consecutive, record

COLUMNS = {field["name"] for field in table_fields("segments")}
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def written(tmp_path: Path, **segments: list[bytes]) -> Path:
    """A partition whose segments are named by their first offsets, `s0=...`."""
    partition = add_partition(tmp_path, "orders-0")
    (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    for name, batches in segments.items():
        for file, content in write_segment(batches, int(name[1:])).by_name.items():
            (partition / file).write_bytes(content)
    return partition


def rows(path: Path) -> list[dict[str, Any]]:
    (log,) = find_partitions([str(path)])
    found = [dict(row) for row in segment_rows(log)]
    for row in found:
        unknown = row.keys() - COLUMNS
        assert not unknown, f"{unknown}: not in schemas/tables/segments.json, so they are dropped"
        lacking = COLUMNS - row.keys() - log_columns(log).keys()
        assert not lacking, f"{lacking}: in schemas/tables/segments.json, and null in every row"
    return found


def kinds(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(found["file"], found["kind"]) for found in row["index_findings"]]


def test_a_row_tells_all_of_a_segment(tmp_path: Path) -> None:
    # F137.
    batches = [batch(0, epoch=2), batch(3, epoch=3)]
    partition = written(tmp_path, s0=batches, s6=[])
    os.utime(partition / log_name(0), ns=(0, 1_650_000_000_000_000_000))
    snapshot = write_producer_snapshot([])
    (partition / f"{0:020d}.snapshot").write_bytes(snapshot)
    first, _ = rows(partition)
    assert first == {
        "topic_id": TOPIC_ID,
        "directory": str(partition),
        "file": str(partition / log_name(0)),
        "segment_base_offset": 0,
        "status": "live",
        "status_reason": "a segment that a broker serves",
        "size": len(batches[0]) + len(batches[1]),
        "modified_ms": 1_650_000_000_000,
        "base_offset": 0,
        "last_offset": 5,
        "batches": 2,
        "records": 6,
        "unframed_bytes": 0,
        "first_timestamp_ms": 1000,
        "least_timestamp_ms": 1000,
        "max_timestamp_ms": 1005,
        "first_leader_epoch": 2,
        "last_leader_epoch": 3,
        "index_bytes": 0,
        "timeindex_bytes": 12,
        "txnindex_bytes": None,
        "snapshot_bytes": len(snapshot),
        "index_verdict": "sound",
        "index_findings": [],
    }


def test_an_empty_segment_has_no_offsets(tmp_path: Path) -> None:
    (row,) = rows(written(tmp_path, s7=[]))
    assert (row["base_offset"], row["last_offset"], row["batches"], row["records"]) == (
        None,
        None,
        0,
        0,
    )
    assert (row["first_timestamp_ms"], row["max_timestamp_ms"]) == (None, None)
    assert (row["status"], row["index_verdict"]) == ("active", "sound")


def test_what_old_headers_do_not_tell_is_null(tmp_path: Path) -> None:
    # F44: a wrapper's first offset and its number of messages need decompression.
    wrapper = write_message_set([record(0), record(1)], 1, CompressionType.GZIP)
    (row,) = rows(written(tmp_path, s0=[wrapper, batch(2)]))
    assert (row["base_offset"], row["last_offset"], row["records"]) == (None, 4, None)


def test_a_delete_horizon_is_not_a_first_timestamp(tmp_path: Path) -> None:
    # F16.
    cleaned = write_batch([Record(0, 500, 0, None, b"")], BatchFields(delete_horizon_ms=9999))
    (row,) = rows(written(tmp_path, s0=[cleaned, batch(1)]))
    assert (row["first_timestamp_ms"], row["max_timestamp_ms"]) == (1001, 1003)


def test_bytes_of_no_batch_are_counted(tmp_path: Path) -> None:
    partition = written(tmp_path, s0=consecutive(2))
    with (partition / log_name(0)).open("ab") as file:
        file.write(bytes(500))
    (row,) = rows(partition)
    assert (row["batches"], row["unframed_bytes"]) == (2, 500)


def test_missing_indexes_are_a_verdict_of_their_own(tmp_path: Path) -> None:
    # F136.
    partition = written(tmp_path, s0=consecutive(2), s6=[])
    (partition / f"{0:020d}.index").unlink()
    missing, _ = rows(partition)
    assert (missing["index_verdict"], kinds(missing)) == ("missing", [(".index", "missing")])
    (partition / f"{0:020d}.timeindex").write_bytes(b"\1")
    both, _ = rows(partition)
    assert both["index_verdict"] == "findings"


def test_brokers_of_0_10_0_wrote_timestamps_and_no_time_index(tmp_path: Path) -> None:
    # F133. With a file that only a later broker writes, the index is missing.
    partition = tmp_path / "t-0"
    partition.mkdir()
    messages = write_message_set([record(0), record(1)], magic=1)
    (partition / log_name(0)).write_bytes(messages)
    (partition / f"{0:020d}.index").touch()
    (row,) = rows(partition)
    assert (row["index_verdict"], row["max_timestamp_ms"] > 0) == ("sound", True)

    (partition / log_name(2)).write_bytes(write_message_set([record(2)], magic=1))
    for name in (f"{2:020d}.index", f"{2:020d}.timeindex"):
        (partition / name).touch()
    first, _ = rows(partition)
    assert kinds(first) == [(".timeindex", "missing")]
    (partition / f"{2:020d}.timeindex").unlink()
    (partition / "leader-epoch-checkpoint").write_text("0\n0\n")
    assert [kinds(row) for row in rows(partition)] == [[(".timeindex", "missing")]] * 2


def test_batches_of_format_2_are_never_without_a_time_index(tmp_path: Path) -> None:
    # F133.
    partition = tmp_path / "t-0"
    partition.mkdir()
    (partition / log_name(0)).write_bytes(consecutive(2)[0])
    (partition / f"{0:020d}.index").touch()
    (row,) = rows(partition)
    assert kinds(row) == [(".timeindex", "missing")]


def test_an_index_without_its_log_has_a_row(tmp_path: Path) -> None:
    # F117, F136.
    partition = written(tmp_path, s0=consecutive(2), s6=[])
    (partition / log_name(0)).unlink()
    orphan, _ = rows(partition)
    assert (orphan["status"], orphan["size"], orphan["batches"]) == ("dropped", None, 0)
    assert kinds(orphan) == [(".index", "orphan"), (".timeindex", "orphan")]
    assert orphan["index_verdict"] == "findings"


def test_snapshots_are_reported_with_the_segment_they_lie_in(tmp_path: Path) -> None:
    # F105, F106, F135; snapshots that are cut, of another version, of a wrong checksum, zeros.
    partition = written(tmp_path, s0=consecutive(2), s6=consecutive(2, start=6))
    sound = write_producer_snapshot([ProducerEntry(7, 0, 0, 11, 0, 1000, -1, -1)])
    spoilt = {
        6: sound,
        7: sound[:-1],
        8: b"\0\2" + sound[2:],
        9: sound[:-1] + b"\1",
        10: bytes(56),
        12: sound,
    }
    for offset, content in spoilt.items():
        (partition / f"{offset:020d}.snapshot").write_bytes(content)
    first, last = rows(partition)
    assert kinds(first) == []
    assert [(int(file[:20]), kind) for file, kind in kinds(last)] == [
        (6, "offset"),
        (7, "checksum"),
        (8, "version"),
        (9, "checksum"),
        (10, "version"),
    ]


def test_the_partitions_own_files_are_reported_with_the_active_segment(tmp_path: Path) -> None:
    # F107, F109, F135.
    partition = written(tmp_path, s0=consecutive(2), s6=[])
    (partition / "leader-epoch-checkpoint").write_text("0\n2\n3 5\n2 9\n")
    (partition / "partition.metadata").write_text("version: x\ntopic_id: x")
    first, active = rows(partition)
    assert (kinds(first), first["topic_id"]) == ([], None)
    assert kinds(active) == [
        ("leader-epoch-checkpoint", "not_rising"),
        ("partition.metadata", "version"),
    ]


def test_files_that_vanish_are_left_out(tmp_path: Path) -> None:
    # F94.
    partition = written(tmp_path, s0=consecutive(2), s6=[])
    (log,) = find_partitions([str(partition)])
    found = segment_rows(log)
    first = dict(next(found))
    assert first["segment_base_offset"] == 0
    (partition / log_name(6)).unlink()
    assert list(found) == []
