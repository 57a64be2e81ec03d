"""`kafkalog find`: where a record is, and what was searched without finding it."""

import csv
import json
from base64 import b64encode
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from tests.support.golden.fixture_sets import consumed
from tests.support.repository import ROOT, Unpack

DAMAGED = ROOT / "examples/log-dirs/damaged"


def find(*arguments: object) -> Result:
    given = ["find", "--processes", "1", *map(str, arguments)]
    return CliRunner().invoke(kafkalog, given, catch_exceptions=False)


def rows(result: Result, kind: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return [line for line in lines if line["type"] == kind]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Two partitions of a topic; the log start checkpoint is 1 in the first."""
    keys_of: tuple[list[bytes | None], ...] = ([b"a", b"b", b"a"], [b"b", b"\xff", None])
    for partition, keys in enumerate(keys_of):
        directory = tmp_path / f"orders-{partition}"
        directory.mkdir()
        records = [
            Record(
                offset, 1000 * offset + partition, 0, key, None if offset == 2 else b"value-4711"
            )
            for offset, key in enumerate(keys)
        ]
        (directory / f"{0:020d}.log").write_bytes(write_batch(records))
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 1\n")
    return tmp_path


def add_topic(log_dir: Path, topic: str, record: Record) -> None:
    directory = log_dir / f"{topic}-0"
    directory.mkdir()
    (directory / f"{record.offset:020d}.log").write_bytes(write_batch([record]))


def test_a_key_is_found_newest_first_with_tombstones_and_what_is_below_the_log_start(
    log_dir: Path,
) -> None:
    # F587.
    result = find(log_dir, "--topic", "orders", "--key", "a", "--format", "json")
    assert result.exit_code == ExitCode.DONE
    found = [
        (row["partition"], row["offset"], row["timestamp_ms"], row["value_size"], row["visibility"])
        for row in rows(result, "found")
    ]
    assert found == [(0, 2, 2000, None, "visible"), (0, 0, 0, 10, "below log start")]
    assert [(row["partition"], row["records"]) for row in rows(result, "searched")] == [
        (0, 3),
        (1, 3),
    ]


def test_all_topics_that_are_named_are_searched(log_dir: Path) -> None:
    add_topic(log_dir, "clicks", Record(7, 500, 0, b"a", b"clicked"))
    add_topic(log_dir, "other", Record(9, 900, 0, b"a", b"another"))
    asked = ("--topic", "orders", "--topic", "clicks", "--key", "a", "--format", "json")
    result = find(log_dir, *asked)
    found = [(row["topic"], row["offset"]) for row in rows(result, "found")]
    assert found == [("orders", 2), ("clicks", 7), ("orders", 0)]
    assert [(row["topic"], row["partition"]) for row in rows(result, "searched")] == [
        ("clicks", 0),
        ("orders", 0),
        ("orders", 1),
    ]
    absent = find(log_dir, "--topic", "orders", "--topic", "order", "--key", "a")
    assert absent.exit_code == ExitCode.WRONG_ARGUMENTS
    assert "--topic: 'order' is not valid" in absent.stderr


def test_keys_and_values_are_shown_shortened_and_decoded_without_secrets(
    log_dir: Path, unpacked: Unpack
) -> None:
    add_topic(log_dir, "clicks", Record(7, 500, 0, b"a", "ä".encode() * 1000))
    given = (log_dir, "--topic", "clicks", "--columns", "key,value,value_size", "--key", "a")
    assert find(*given).stdout.splitlines()[1].split() == ["a", f"{'ä' * 64}…", "2000"]
    # Any topic can be that of a Connect cluster.
    secret = b'{"properties": {"connector.class": "a.B", "db.password": "s3cret"}}'
    add_topic(log_dir, "configs", Record(7, 500, 0, b"connector-c", secret))
    said = find(log_dir, "--topic", "configs", "--value-contains", "s3cret").stdout
    assert "a.B" in said
    assert "s3cret" not in said
    logs = unpacked("kafka44.logs") / "log-dirs"
    said = find(
        logs, "--topic", "__consumer_offsets", "--key", "shop.g-classic-empty", "--limit", "1"
    ).stdout
    assert '"group":"shop.g-classic-empty"' in said
    # A marker of a transaction is what kafka-dump-log calls it.
    said = find(logs, "--topic", "shop.tx", "--from-time", 0, "--limit", 2000).stdout
    assert "endTxnMarker: ABORT coordinatorEpoch: " in said


def test_many_logs_have_a_line_for_each_topic(log_dir: Path) -> None:
    # F588: with what is missing and damaged in each.
    for number in range(10):
        add_topic(log_dir, f"clicks.{number}", Record(7, 500, 0, b"a", b"clicked"))
    (segment,) = (log_dir / "clicks.3-0").glob("*.log")
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    lines = find(log_dir, "--key", "a").stderr.splitlines()
    searched = [line for line in lines if line.startswith("searched ")]
    assert len(searched) == 11
    (line,) = (line for line in searched if "orders: 2 logs, 6 records in " in line)
    assert line.endswith("; last offset 2 in partition 0, 2 in partition 1")
    assert "  in no file here: offsets below the first of clicks.5-0 7" in lines
    assert any(f"{segment}: position 0" in line and "may hide" in line for line in lines)


def test_a_partitioner_chooses_a_partition_of_each_topic(log_dir: Path) -> None:
    # F588. Of Kafka's own test of murmur2: that of "21" is -973932308.
    number = (-973932308 & 0x7FFFFFFF) % 2
    add_topic(log_dir, "clicks", Record(7, 500, 0, b"21", b"clicked"))
    asked = ("--topic", "orders", "--topic", "clicks", "--key", "21", "--partitioner", "java")
    result = find(log_dir, *asked, "--format", "json")
    searched = [(row["topic"], row["partition"]) for row in rows(result, "searched")]
    assert searched == [("orders", number), ("clicks", 0)]
    assert [row["topic"] for row in rows(result, "found")] == ["clicks"]
    several = find(log_dir, *asked, "--partition-count", "2")
    assert (several.exit_code, several.stderr.count("\n")) == (2, 1)
    assert "--partition-count: only with --partitioner and one" in several.stderr


def test_what_no_consumer_has_yet_is_not_visible(log_dir: Path) -> None:
    # F587: behind the high watermark, which a broker that was shut down cleanly has written.
    (log_dir / "replication-offset-checkpoint").write_text("0\n2\norders 0 2\norders 1 3\n")
    (log_dir / ".kafka_cleanshutdown").write_text("")
    found = rows(find(log_dir, "--topic", "orders", "--key", "a", "--format", "json"), "found")
    assert [(row["offset"], row["visibility"]) for row in found] == [
        (2, "above high watermark"),
        (0, "below log start"),
    ]


def test_records_that_are_missing_from_the_end_may_have_had_the_key(log_dir: Path) -> None:
    # F76, F588: nothing that is left is damaged.
    (log_dir / "replication-offset-checkpoint").write_text("0\n2\norders 0 9\norders 1 3\n")
    result = find(log_dir, "--topic", "orders", "--key", "absent")
    assert "missing_end, which may hide records from offset 3 on" in result.stderr
    assert result.stderr.endswith("not found, and damage may hide it\n")


def test_records_of_a_segment_that_is_missing_may_have_had_the_key(unpacked: Unpack) -> None:
    # F73, F587: segment 463 of a broker's log was deleted, and all that is left is sound.
    variant = unpacked("unclean.logs") / "variants" / "middle-segment-missing" / "log-dirs"
    result = find(variant, "--topic", "e.w", "--key", "absent")
    assert (
        "00000000000000000000.log: position 59335, 0 bytes: segment_hole, which may hide records "
        "from offset 463 on\n" in result.stderr
    )
    assert result.stderr.endswith("not found, and damage may hide it\n")
    # From a log that is cleaned, whole segments may be gone.
    cleaned = unpacked("kafka44.logs") / "log-dirs"
    result = find(cleaned, "--topic", "shop.compact-drop", "--key", "absent")
    assert "segment_hole" not in result.stderr


def test_logs_and_partitions_that_are_missing_may_have_had_the_key(log_dir: Path) -> None:
    # F76, F588: by the checkpoint, of which orders-2 is no more than a name.
    text = "0\n4\norders 0 9\norders 1 3\norders 2 7\nother 0 1\n"
    (log_dir / "replication-offset-checkpoint").write_text(text)
    (log_dir / "orders-0" / f"{0:020d}.log").unlink()
    result = find(log_dir, "--topic", "orders", "--key", "absent")
    named = f"missing: 1 partition that the checkpoints of {log_dir} name: orders-2\n"
    assert named in result.stderr
    lost = f"  {log_dir / 'orders-0'}: position 0, 0 bytes: missing_end, which may hide records "
    assert f"{lost}from offset 1 on\n" in result.stderr
    assert result.stderr.endswith("not found, and damage may hide it\n")


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        (["--key", "b"], [(0, 1), (1, 0)]),
        (["--key", "hex:ff"], [(1, 1)]),
        (["--key", "b", "--partition", "1"], [(1, 0)]),
        (["--value-contains", "471"], [(1, 1), (0, 1), (1, 0), (0, 0)]),
        (["--value-contains", "471", "--limit", "2"], [(1, 1), (0, 1)]),
        (["--value-contains", "471", "--key", "a"], [(0, 0)]),
    ],
)
def test_records_are_found_by_key_and_value(
    arguments: list[str], places: list[tuple[int, int]], log_dir: Path
) -> None:
    result = find(log_dir, "--topic", "orders", "--format", "json", *arguments)
    assert [(row["partition"], row["offset"]) for row in rows(result, "found")] == places


def test_what_is_not_found_is_accounted_for_with_what_could_hide_it() -> None:
    result = find(DAMAGED, "--topic", "e.w", "--key", "absent")
    assert (result.exit_code, result.stdout) == (ExitCode.FINDINGS, "")
    said = result.stderr.splitlines()
    assert said[0].endswith("e.w-0: offsets 0 to 2799, 2,730 records in 7 segments, 358 KiB")
    assert [line.split(": ", 1)[1] for line in said[1:4]] == [
        "position 23728, 1,558 bytes: checksum, which may hide records from offset 191 on",
        "position 7979, 4,096 bytes: zeros, which may hide records from offset 2721 on",
        "position 12075, 3,879 bytes: garbage, which may hide records from offset 2721 on",
    ]
    assert said[-1] == "not found, and damage may hide it"


def test_the_partitioner_leaves_partitions_out_only_if_asked_and_says_so(log_dir: Path) -> None:
    # F588. Of Kafka's own test of murmur2: that of "21" is -973932308.
    number = (-973932308 & 0x7FFFFFFF) % 2
    result = find(log_dir, "--topic", "orders", "--key", "21", "--partitioner", "java")
    said = result.stderr.splitlines()
    assert said[0] == (
        f"Java's partitioner chooses orders-{number} of 2 partitions: only that one is searched"
    )
    assert [line.split()[1] for line in said if line.startswith("searched")] == [f"orders-{number}"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--value-contains", "x", "--partitioner", "java"], "--partitioner: only with --key"),
        (["--key", "a", "--partition-count", "2"], "--partition-count: only with --p"),
        (["--key", "a", "--partition", "7"], "--partition: '7'"),
        (["--key", "hex:f"], "hex: followed by hex"),
    ],
)
def test_what_cannot_be_searched_is_said_in_a_line(
    arguments: list[str], said: str, log_dir: Path
) -> None:
    result = find(log_dir, "--topic", "orders", *arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert said in result.stderr


def test_without_a_key_or_bytes_it_is_said_what_is_missing(log_dir: Path) -> None:
    result = find(log_dir, "--topic", "orders")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Missing option '--key', '--value-contains', '--header', '--value-path'" in result.stderr


def test_records_of_a_time_are_found_in_all_topics_and_markers_are_control(
    unpacked: Unpack,
) -> None:
    # F587: those of a topic that the consumer received, and of the others too.
    golden, logs = unpacked("kafka44.golden"), unpacked("kafka44.logs") / "log-dirs"
    received = consumed(golden, "shop.append.time", "read_uncommitted")
    times = sorted(row["timestamp"] for row in received)
    first_ms, end_ms = times[200], times[600]
    asked = ("--from-time", first_ms, "--until-time", end_ms, "--format", "json")
    found = rows(find(logs, *asked), "found")
    assert {
        (row["partition"], row["offset"]) for row in found if row["topic"] == "shop.append.time"
    } == {
        (row["partition"], row["offset"])
        for row in received
        if first_ms <= row["timestamp"] < end_ms
    }
    many = ("--limit", 2000, "--format", "json")
    markers = rows(find(logs, "--topic", "shop.tx", "--from-time", 0, *many), "found")
    read = consumed(golden, "shop.tx", "read_uncommitted")
    assert not {
        (row["partition"], row["offset"]) for row in markers if row["visibility"] == "control"
    } & {(row["partition"], row["offset"]) for row in read}
    assert sum(row["visibility"] == "control" for row in markers) > 100


def test_dump_says_of_a_key_what_find_says(unpacked: Unpack) -> None:
    # F587
    logs = unpacked("kafka44.logs") / "log-dirs"
    dumped = CliRunner().invoke(
        kafkalog, ["dump", str(logs), "--key", "tx4-257", "--format", "json", "--processes", "1"]
    )
    lines = [json.loads(line) for line in dumped.stdout.splitlines()]
    found = rows(find(logs, "--key", "tx4-257", "--format", "json"), "found")
    names = ("topic", "partition", "offset", "visibility")
    told = {tuple(row[name] for name in names) for row in lines if row["type"] == "record"}
    assert told == {tuple(row[name] for name in names) for row in found}
    assert len(told) == len(found) == 5


def test_visible_are_those_that_a_consumer_of_committed_records_received(unpacked: Unpack) -> None:
    logs, golden = unpacked("kafka44.logs") / "log-dirs", unpacked("kafka44.golden")
    result = find(logs, "--topic", "shop.tx", "--value-contains", "", "--format", "json")
    visible = {
        (row["partition"], row["offset"])
        for row in rows(result, "found")
        if row["visibility"] == "visible"
    }
    # Without values, none was looked for.
    received = consumed(golden, "shop.tx", "read_committed")
    assert visible == {
        (row["partition"], row["offset"]) for row in received if row["value"] is not None
    }
    assert {row["visibility"] for row in rows(result, "found")} == {
        "visible",
        "aborted",
        "open transaction",
        "behind open transaction",
    }


def test_the_last_value_of_a_key_is_the_one_with_the_last_offset(unpacked: Unpack) -> None:
    # F952: producers have given the records of this key times that do not rise with the offsets.
    received = consumed(unpacked("kafka44.golden"), "shop.idem", "read_uncommitted")
    times = {row["offset"]: row["timestamp"] for row in received if row["key"] == b"shop.k39"}
    offsets = sorted(times)
    assert max(offsets, key=times.__getitem__) != offsets[-1]
    given = (unpacked("kafka44.logs") / "log-dirs", "--topic", "shop.idem", "--key", "shop.k39")
    for limit in (1, 5, 1000):
        result = find(*given, "--limit", limit, "--format", "json")
        found = [row["offset"] for row in rows(result, "found")]
        assert found == offsets[::-1][:limit]


def test_of_two_partitions_the_later_record_comes_first_and_a_tombstone_says_so(
    log_dir: Path,
) -> None:
    # F952
    result = find(log_dir, "--topic", "orders", "--from-time", "1970-01-01T00:00:00Z")
    table = [line.split() for line in result.stdout.splitlines()[1:]]
    assert [row[1:3] for row in table] == [[p, o] for o in "210" for p in "10"]
    # Key, value and its size; b"\xff" is not UTF-8.
    value = ["value-4711", "10"]
    assert [row[4:7] for row in table] == [
        *(["-", "-", "tombstone"], ["a", "-", "tombstone"]),
        *(["hex:ff", *value], ["b", *value], ["b", *value], ["a", *value]),
    ]


def test_a_log_outside_a_partitions_directory_has_the_name_of_its_own(log_dir: Path) -> None:
    log = log_dir / "elsewhere" / f"{0:020d}.log"
    log.parent.mkdir()
    log.write_bytes((log_dir / "orders-0" / log.name).read_bytes())
    assert f"searched elsewhere in {log.parent}: " in find("--key", "a", log).stderr


def test_records_are_found_by_a_header_and_by_what_is_at_a_path(log_dir: Path) -> None:
    # F587, F1266: conditions hold together.
    add_topic(
        log_dir, "clicks", Record(7, 500, 0, b"a", b'{"user": {"id": 17}}', (("by", b"app"),))
    )
    add_topic(
        log_dir, "views", Record(9, 900, 0, b"a", b'{"user": {"id": 17.0}}', (("by", b"web"),))
    )
    names = ("--topic", "clicks", "--topic", "views", "--format", "json")
    for given, topics in (
        (["--header", "by=app"], ["clicks"]),
        (["--value-path", "$.user.id=17"], ["views", "clicks"]),
        (["--value-path", "$.user.id=17", "--header", "by=web"], ["views"]),
        (["--value-path", "$.user.id=17", "--key", "b"], []),
    ):
        result = find(log_dir, *names, *given)
        assert [row["topic"] for row in rows(result, "found")] == topics
        assert result.exit_code == (ExitCode.DONE if topics else ExitCode.FINDINGS)


def test_values_that_are_not_decoded_may_hide_what_is_at_a_path(
    log_dir: Path, tmp_path: Path
) -> None:
    # F1266: Avro behind the id of a schema that is not known.
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    fields = '{"type": "record", "name": "C", "fields": [{"name": "user", "type": "string"}]}'
    (schemas / "7.avsc").write_text(fields)
    add_topic(log_dir, "clicks", Record(7, 500, 0, b"a", b"\0\0\0\0\7\4me"))
    given = ("--topic", "clicks", "--value-path", "$.user=me")
    result = find(log_dir, *given)
    assert result.exit_code == ExitCode.FINDINGS
    assert "  1 value not decoded, which may hide what is at the path" in result.stderr
    assert result.stderr.endswith("not found, and values that are not decoded may hide it\n")
    decoded = find(log_dir, *given, "--schema-registry", schemas, "--format", "json")
    assert [row["offset"] for row in rows(decoded, "found")] == [7]
    assert rows(decoded, "searched")[0]["undecoded"] == 0


def test_the_largest_records_are_those_that_a_consumer_received(unpacked: Unpack) -> None:
    # F587
    logs, golden = unpacked("kafka44.logs") / "log-dirs", unpacked("kafka44.golden")
    result = find(logs, "--topic", "shop.idem", "--largest", 5, "--format", "json")
    received = consumed(golden, "shop.idem", "read_uncommitted")
    sizes = {row["offset"]: len(row["key"] or b"") + len(row["value"] or b"") for row in received}
    found = rows(result, "found")
    assert [row["record_size"] for row in found] == sorted(sizes.values(), reverse=True)[:5]
    assert [sizes[row["offset"]] for row in found] == [row["record_size"] for row in found]
    assert "the largest 5 of them are shown" in result.stderr


def test_the_largest_of_a_key_can_be_found(log_dir: Path) -> None:
    asked = ("--topic", "orders", "--key", "a", "--largest", 1, "--format", "json")
    (row,) = rows(find(log_dir, *asked), "found")
    assert (row["offset"], row["record_size"]) == (0, 1 + len("value-4711"))


def test_as_text_copies_of_a_record_in_replicas_are_a_row(unpacked: Unpack) -> None:
    # F587: consumers read these offsets with each broker as the leader; what only one had comes
    # from an unclean election.
    logs = unpacked("diverged44.logs")
    read = json.loads((unpacked("diverged44.golden") / "elections.json").read_text())["before"]
    values: dict[int, Counter[str]] = defaultdict(Counter)
    for _, partition, offset, value in read:
        if partition == 0:
            values[offset][value] += 1
    given = [logs / f"node-{node}" / "data" for node in (11, 12, 13)]
    asked = ("--topic", "orders", "--partition", 0, "--value-contains", "-0")
    text = find(*given, *asked, "--columns", "offset,copies")
    shown = [tuple(map(int, line.split())) for line in text.stdout.splitlines()[1:]]
    expected = [
        (offset, copies)
        for offset, found in values.items()
        for value, copies in found.items()
        if "-0" in value
    ]
    assert sorted(shown) == sorted(expected)
    assert {copies for _, copies in shown} == {1, 3}
    assert "records, each copy counted" in text.stderr
    # A record that all have is named with all brokers, and one of an unclean leader with that one.
    named = find(*given, *asked, "--columns", "copies,broker_ids").stdout.splitlines()[1:]
    ids = {tuple(line.split()) for line in named}
    assert ("3", "11,12,13") in ids
    assert {count for count, _ in ids} == {"1", "3"}
    assert {brokers for count, brokers in ids if count == "1"} <= {"11", "12", "13"}
    assert len(rows(find(*given, *asked, "--format", "json"), "found")) == sum(
        copies for _, copies in expected
    )
    # So many records, whatever the number of their copies.
    limited = find(*given, *asked, "--limit", 25, "--columns", "offset,copies").stdout
    assert len(limited.splitlines()) - 1 >= 25


def test_json_and_csv_have_keys_values_and_headers_whole(log_dir: Path) -> None:
    # F587: as `kafkalog dump --format json` and the other tables have them.
    headers = (("user", b"cust-17"), ("raw", b"\xff"), ("none", None))
    add_topic(log_dir, "clicks", Record(7, 500, 0, b"\xff\0", b"v" * 70_000, headers))
    given = ("--topic", "clicks", "--from-time", 0)
    (row,) = rows(find(log_dir, *given, "--format", "json"), "found")
    assert row["key"] == b64encode(b"\xff\0").decode()
    assert row["value"] == "v" * 70_000
    assert row["headers"] == [
        {"key": "user", "value": "cust-17"},
        {"key": "raw", "value": "/w=="},
        {"key": "none", "value": None},
    ]
    (of_csv,) = csv.DictReader(find(log_dir, *given, "--format", "csv").stdout.splitlines())
    assert of_csv["key"] == row["key"]
    assert json.loads(of_csv["headers"]) == row["headers"]
    chosen = ("--format", "csv", "--columns", "offset,key")
    assert find(log_dir, *given, *chosen).stdout == f"offset,key\n7,{row['key']}\n"


@pytest.mark.parametrize("topic", ["shop.tx", "shop.idem", "shop.codec-zstd", "shop.raw"])
def test_json_has_what_a_consumer_received(topic: str, unpacked: Unpack) -> None:
    # Compressed batches, transactions, and message formats 0 and 1.
    logs, golden = unpacked("kafka44.logs") / "log-dirs", unpacked("kafka44.golden")
    asked = ("--topic", topic, "--value-contains", "", "--limit", 5000, "--format", "json")
    found = {
        (row["partition"], row["offset"]): (row["key"], row["value"])
        for row in rows(find(logs, *asked), "found")
    }
    received = [row for row in consumed(golden, topic, "read_uncommitted") if row["value"]]
    assert received

    def text(payload: bytes | None) -> str | None:
        try:
            return None if payload is None else payload.decode()
        except UnicodeDecodeError:
            return b64encode(payload or b"").decode()

    for row in received:
        place = row["partition"], row["offset"]
        assert found[place] == (text(row["key"]), text(row["value"]))


def test_json_hides_the_secrets_that_text_hides(log_dir: Path) -> None:
    # F194: a connector's config, by a key that a worker writes.
    value = json.dumps({"properties": {"password": "hunter2", "topic": "orders"}}).encode()
    add_topic(log_dir, "connect-configs", Record(0, 0, 0, b"connector-sink", value))
    given = ("--topic", "connect-configs", "--from-time", 0, "--format", "json")
    result = find(log_dir, *given)
    assert "hunter2" not in result.stdout
    assert '\\"topic\\"' in result.stdout
