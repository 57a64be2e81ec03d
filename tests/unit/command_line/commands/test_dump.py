"""What `kafkalog dump` prints and writes, by format; damage at its place."""

import base64
import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafkalog.exit_codes import ExitCode
from kafkalog.format.record_batch import write_batch
from kafkalog.format.side_files.indexes import OffsetEntry, write_offset_index
from kafkalog.messages.record_writer import write_record_value
from tests.support.logs.dumped_records import FIRST_MS, RECORDS, dump, json_lines, record
from tests.support.repository import ROOT

EXAMPLES = ROOT / "examples/log-dirs"


def test_text_has_a_line_for_every_batch_and_every_record(orders: Path) -> None:
    # F580, F581.
    result = dump("--deep", orders)
    lines = result.stdout.splitlines()
    assert (result.exit_code, result.stderr, len(lines)) == (ExitCode.DONE, "", 8)
    assert lines[:2] == [f"Dumping {orders}/{0:020d}.log", "Log starting offset: 0"]
    assert lines[2].startswith("baseOffset: 0 lastOffset: 1 count: 2 baseSequence: -1 ")
    assert lines[3] == (
        f"| offset: 0 CreateTime: {FIRST_MS} keySize: 2 valueSize: 9 sequence: -1 "
        "headerKeys: [h,none] headers: [h=v, none=null] key: \\xff\\x00 payload: red \\x1b[31m"
    )
    assert lines[4].endswith(" keySize: -1 valueSize: 0 sequence: -1 headerKeys: [] payload: ")
    assert lines[6].endswith(" keySize: 0 valueSize: -1 sequence: 5 headerKeys: [] key: ")
    assert lines[7].endswith(' key: k"3 payload: a,"b"\\nc\\ é')


def test_json_loses_nothing(orders: Path) -> None:
    # F582.
    found = [line for line in json_lines("--deep", orders) if line["type"] == "record"]

    def original(line: dict[str, Any], name: str) -> bytes | None:
        if f"{name}Base64" in line:
            return base64.b64decode(line[f"{name}Base64"])
        text: str | None = line[name]
        return None if text is None else text.encode()

    pairs = [(original(line, "key"), original(line, "payload")) for line in found]
    assert pairs == [(record.key, record.value) for record in RECORDS]
    assert found[0]["headers"] == [{"key": "h", "value": "v"}, {"key": "none", "value": None}]
    assert (found[3]["topic"], found[3]["partition"], found[3]["offset"]) == ("orders", 0, 3)


def test_csv_loses_nothing_either(orders: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(dump("--deep", "--format", "csv", orders).stdout)))
    assert [base64.b64decode(row["keyBase64"]) or row["key"].encode() for row in rows] == [
        record.key or b"" for record in RECORDS
    ]
    assert [row["payload"].encode() for row in rows] == [record.value or b"" for record in RECORDS]
    assert json.loads(rows[0]["headers"])[1] == {"key": "none", "value": None}
    assert [row["keySize"] for row in rows] == ["2", "-1", "0", "3"]


def test_parquet_has_the_columns_of_view_records(orders: Path, tmp_path: Path) -> None:
    target = tmp_path / "records.parquet"
    assert dump("--deep", "--format", "parquet", "--output", target, orders).exit_code == 0
    rows = pq.read_table(target).to_pylist()
    assert [(row["offset"], row["key"], row["value"]) for row in rows] == [
        (record.offset, record.key, record.value) for record in RECORDS
    ]
    batches = tmp_path / "batches.parquet"
    assert dump("--format", "parquet", "--output", batches, orders).exit_code == 0
    assert pq.read_table(batches).column("base_offset").to_pylist() == [0, 2]


def test_damage_is_reported_at_its_place_and_reading_goes_on(orders: Path) -> None:
    # F584.
    path = orders / f"{0:020d}.log"
    whole = path.read_bytes()
    size = int.from_bytes(whole[8:12], "big") + 12
    path.write_bytes(whole[:70] + b"X" + whole[71:] + whole[:30])
    result = dump("--deep", "--fail-on-findings", path)
    lines = result.stdout.splitlines()
    assert result.exit_code == ExitCode.FINDINGS
    assert lines[2].endswith("isvalid: false")
    assert lines[3].startswith(
        f"Found {size} invalid bytes at {path.name}, position: 0 checksum: stored 0x"
    )
    assert [line[:12] for line in lines[4:7]] == ["baseOffset: ", "| offset: 2 ", "| offset: 3 "]
    # What a broker leaves that is killed while it writes is printed, without a finding.
    assert lines[-1].startswith(f"Found 30 invalid bytes at the end of {path.name}, position: ")
    assert result.stderr == "1 damaged range skipped\n"
    faults = [line for line in json_lines(path) if line["type"] == "fault"]
    assert [(f["fault"], f["position"], f["size"], f["severity"]) for f in faults] == [
        ("checksum", 0, size, "error"),
        ("truncated", len(whole), 30, "information"),
    ]


def test_parquet_tells_damage_once_where_parts_of_a_segment_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # F584. Both parts meet the damage: it holds the place where the second was to begin.
    batches = [write_batch([record(offset, b"k", b"v" * 400)]) for offset in range(8)]
    size = len(batches[0])
    directory = tmp_path / "orders-0"
    directory.mkdir()
    entries = [OffsetEntry(offset, offset * size) for offset in range(1, 8)]
    (directory / f"{0:020d}.index").write_bytes(write_offset_index(entries, 0))
    data = bytearray(b"".join(batches))
    data[5 * size - 20 : 5 * size + 20] = b"X" * 40
    (directory / f"{0:020d}.log").write_bytes(data)
    monkeypatch.setattr("kafkalog.command_line.dump.plan._PART_BYTES", 4 * size)
    result = dump("--deep", "--format", "parquet", "--output", tmp_path / "dumped", directory)
    places = [
        line.partition(": position ")[2].partition(":")[0] for line in result.stderr.splitlines()
    ]
    told = [f"{4 * size}, {size} bytes", f"{5 * size}, {size} bytes"]
    assert places == [*told, "", ""]
    assert result.stderr.splitlines()[2:] == [
        f"6 records written to {tmp_path / 'dumped'}",
        "2 damaged ranges skipped",
    ]
    assert pq.read_table(tmp_path / "dumped")["offset"].to_pylist() == [0, 1, 2, 3, 6, 7]


def test_records_of_internal_topics_are_decoded_unless_raw() -> None:
    # F583.
    path = EXAMPLES / "kafka-4.4/__consumer_offsets-4"
    shown = next(line for line in json_lines("--deep", path) if line["type"] == "record")
    assert shown["key"]["data"] == {"group": "shop.g-deleted", "topic": "shop.idem", "partition": 0}
    raw = next(line for line in json_lines("--deep", "--raw", path) if line["type"] == "record")
    assert raw["key"].startswith("\x00\x01\x00\x0eshop.g-deleted")


def test_keys_of_tiered_storages_records_stand_as_they_are(tmp_path: Path) -> None:
    # F189, F583
    directory = tmp_path / "__remote_log_metadata-0"
    directory.mkdir()
    partition = {"name": "t", "partition": 3, "id": "AAAAAAAAAAAAAAAAAAAAAQ"}
    value = write_record_value(
        directory.name[:-2],
        2,
        0,
        {
            "topicIdPartition": partition,
            "brokerId": 5,
            "eventTimestampMs": 9,
            "remotePartitionDeleteState": 2,
        },
    )
    records = [record(0, b"id:t:3", value), record(1, b"id:t:3", None), record(2, None, value)]
    (directory / f"{0:020d}.log").write_bytes(write_batch(records))
    shown = [line for line in json_lines("--deep", directory) if line["type"] == "record"]
    assert [line["key"] for line in shown] == ["id:t:3", "id:t:3", None]
    assert [line["payload"] and line["payload"]["data"]["brokerId"] for line in shown] == [
        5,
        None,
        5,
    ]
    lines = dump("--deep", directory).stdout.splitlines()
    assert [line.partition(" key: ")[2] for line in lines if " offset: 1 " in line] == [
        "id:t:3 payload: <DELETE>"
    ]


@pytest.mark.parametrize("output", ["rows.csv", "rows.parquet"])
def test_records_of_snapshots_do_not_come_among_those_of_a_log(output: str, tmp_path: Path) -> None:
    # Their offsets count from 0 again, in a file of their own.
    partition = tmp_path / "logs" / "__cluster_metadata-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020d}.log").write_bytes(write_batch([record(0, None, b"log")]))
    snapshot = partition / f"{1:020d}-{1:010d}.checkpoint"
    snapshot.write_bytes(write_batch([record(0, None, b"snapshot")]))
    (partition.parent / "bootstrap.checkpoint").write_bytes(write_batch([record(0, None, b"boot")]))
    for path in (partition.parent, partition, f"{partition}/*"):
        assert written_values(tmp_path / output, path) == [b"log"]
    # By its own path it is read.
    assert written_values(tmp_path / output, snapshot) == [b"snapshot"]
    assert dump("--topic", "orders", snapshot).exit_code == ExitCode.WRONG_ARGUMENTS


def written_values(output: Path, path: object) -> list[bytes]:
    """The values of the records that are written to a file."""
    result = dump("--deep", "--raw", "--output", output, path)
    assert result.exit_code == ExitCode.DONE, result.stderr
    if output.suffix == ".parquet":
        return [bytes(value) for value in pq.read_table(output).column("value").to_pylist()]
    with output.open(newline="") as lines:
        return [row["payload"].encode() for row in csv.DictReader(lines)]


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("x.json", b"{"),
        ("x.JSONL", b"{"),
        ("x.csv", b"topic,"),
        ("x.parquet", b"PAR1"),
        ("x", b"Dumping"),
    ],
)
def test_the_name_of_the_output_says_its_format(
    name: str, begin: bytes, orders: Path, tmp_path: Path
) -> None:
    target = tmp_path / name
    assert dump("--output", target, orders).exit_code == 0
    assert target.read_bytes().startswith(begin)
    assert dump("--format", "text", "--output", target, orders).exit_code == 0
    assert target.read_bytes().startswith(b"Dumping")


def test_what_is_written_and_what_it_replaces_is_said(orders: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.parquet"
    said = dump("--deep", "--output", target, orders).stderr
    assert said == f"4 records written to {target}\n"
    said = dump("--output", target, orders).stderr
    assert said == (
        f"{target}: replacing the existing file\n"
        f"2 batches written to {target}; --deep writes records\n"
    )


def test_how_many_records_an_old_compressed_batch_has_is_known_with_deep_only() -> None:
    path = EXAMPLES / "kafka-0.10" / "old.codec-gzip-0" / f"{0:020d}.log"
    assert {line["count"] for line in json_lines(path)} == {None}
    lines = json_lines("--deep", path)
    counts = [line["count"] for line in lines if line["type"] == "batch"]
    assert sum(counts) == sum(line["type"] == "record" for line in lines)
    assert dump("--format", "csv", path).stdout.splitlines()[1].split(",")[3:6:2] == ["", ""]
