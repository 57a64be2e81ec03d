"""`kafkalog ls` against what brokers' own tools said of the same logs, and what it finds beside."""

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.words import size_text
from tests.support.golden.answered_offsets import printed_offsets
from tests.support.golden.fixture_sets import dumped_batches, unique_segments
from tests.support.repository import SHOP

Unpacked = Callable[[str], Path]


def run(*arguments: object) -> tuple[int, str, str]:
    given = ["ls", *map(str, arguments), "--processes", "1"]
    result = CliRunner().invoke(kafkalog, given)
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: object) -> list[dict[str, Any]]:
    code, out, _ = run(*arguments, "--format", "json")
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]


def test_records_below_the_log_start_are_named(unpacked: Unpacked) -> None:
    # F1390: by the broker's log starts, and the first batches that kafka-dump-log printed.
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    firsts: dict[str, int] = {}
    for segment in unique_segments(logs):
        for batch in dumped_batches(golden, segment) or ():
            name, first = segment.path.parent.name, int(batch["baseOffset"])
            firsts[name] = min(first, firsts.get(name, first))
    starts = printed_offsets(golden, -2)
    names = ("shop.del-records-0", "shop.del-records-mid-0")
    below = sum(starts[name] - firsts[name] for name in names)
    (line,) = (
        line
        for line in run(logs / "log-dirs")[1].splitlines()
        if line.startswith("below the log start: ")
    )
    assert line.startswith(f"below the log start: {below} offsets of {', '.join(names)}: ")


def test_partitions_begin_and_end_where_the_broker_said(unpacked: Unpacked) -> None:
    # F95, F146
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    found = {
        f"{row['topic']}-{row['partition']}": (row["start_offset"], row["end_offset"])
        for row in rows(logs / "log-dirs", "--by", "partition")
    }
    starts, ends = printed_offsets(golden, -2), printed_offsets(golden, -1)
    assert {key: found[key] for key in ends} == {key: (starts[key], ends[key]) for key in ends}


def test_segments_hold_the_batches_that_dump_log_printed(unpacked: Unpacked) -> None:
    logs, golden = unpacked("kafka44.logs"), unpacked("kafka44.golden")
    found = {row["file"]: row for row in rows(logs / "log-dirs", "--by", "segment")}
    compared = 0
    for segment in unique_segments(logs):
        told = dumped_batches(golden, segment)
        if told is None or str(segment.path) not in found:
            continue
        row = found[str(segment.path)]
        codecs: Counter[str] = Counter()
        for batch in told:
            codecs[batch["compresscodec"]] += int(batch["size"])
        assert (row["batches"], row["codecs"]) == (len(told), codecs)
        counts = {"true": 0, "false": 0}
        for batch in told:
            counts[batch["isControl"]] += int(batch["count"])
        assert (row["records"], row["control_records"]) == (counts["false"], counts["true"])
        assert row["last_offset"] == (int(told[-1]["lastOffset"]) if told else None)
        compared += 1
    assert compared > 20


def test_topics_are_the_sum_of_their_partitions_and_segments() -> None:
    by_topic = {row["topic"]: row for row in rows(SHOP)}
    assert list(by_topic) == ["__consumer_offsets", "customers", "orders"]
    for level in ("partition", "segment"):
        parts = [row for row in rows(SHOP, "--by", level) if row["topic"] == "orders"]
        for name in ("size", "records", "batches"):
            assert sum(row[name] for row in parts) == by_topic["orders"][name]
    files = [path for path in SHOP.rglob("orders-*/*") if path.suffix == ".log"]
    assert by_topic["orders"]["size"] == sum(path.stat().st_size for path in files)
    sides = [path for path in SHOP.rglob("orders-*/*") if path.suffix != ".log"]
    assert by_topic["orders"]["side_bytes"] == sum(path.stat().st_size for path in sides)


def test_sums_over_several_copies_of_a_partition_are_said_to_be_such(unpacked: Unpacked) -> None:
    logs = unpacked("diverged44.logs")
    data = [str(logs / f"node-{node}" / "data") for node in (11, 12, 13)]
    several = {row["topic"]: row for row in rows(*data)}
    single = {row["topic"]: row for row in rows(data[0])}
    assert (several["orders"]["partitions"], several["orders"]["copies"]) == (2, 6)
    assert "copies" not in single["orders"]
    _, text, _ = run(*data)
    assert "3 partitions of 3 here in several copies: sizes, records and batches" in text
    assert text.splitlines()[3].split()[:3] == ["TOPIC", "PARTITIONS", "COPIES"]
    assert "several copies" not in run(data[0])[1]
    assert "several copies" in run("--savings", *data)[1]


def test_beside_a_file_are_the_files_named_like_it_and_nothing_else() -> None:
    path = next(path for path in sorted(SHOP.rglob("orders-*/*.log")) if int(path.stem))
    sides = [other for other in path.parent.glob(f"{path.stem}.*") if other != path]
    (row,) = rows(path)
    assert row["side_bytes"] == sum(other.stat().st_size for other in sides) > 0
    assert "also there" not in run(path)[1]


def test_the_ratio_is_what_compression_saves() -> None:
    found = {row["topic"]: row["ratio"] for row in rows(SHOP, "--deep")}
    assert found["customers"] == 1
    assert found["orders"] > 1
    assert "ratio" not in rows(SHOP)[0]


def test_names_and_sizes_alone_need_no_file_to_be_opened(tmp_path: Path) -> None:
    copy = tmp_path / "shop"
    shutil.copytree(SHOP, copy)
    for path in copy.rglob("*.log"):
        path.write_bytes(bytes(path.stat().st_size))
    assert rows(copy, "--quick") == rows(SHOP, "--quick")
    assert set(rows(SHOP, "--quick")[0]) == {
        *("topic", "partitions", "segments", "size", "side_bytes", "total_size")
    }


def test_text_says_whose_the_directories_are_and_what_else_is_there(tmp_path: Path) -> None:
    copy = tmp_path / "shop"
    shutil.copytree(SHOP, copy)
    deleted = copy / f"customers-7.{'a' * 32}-delete"
    shutil.copytree(copy / "customers-0", deleted)
    size = sum(path.stat().st_size for path in deleted.iterdir())
    (copy / "lost+found").mkdir()
    for suffix in (".log.deleted", ".index.deleted"):
        (copy / "orders-0" / f"{0:020d}{suffix}").write_bytes(b"12345")
    (copy / "orders-1" / "notes.txt").write_text("hello")
    code, out, err = run(copy)
    first, *_ = out.splitlines()
    *others, total = [line for line in out.splitlines() if line.startswith(("also", "in all"))]
    assert (code, err) == (0, "")
    whole = sum(path.stat().st_size for path in copy.rglob("*") if path.is_file())
    assert total.startswith(f"in all: {copy}, {size_text(whole)} in ")
    assert first.startswith(f"{copy}: broker 1 of cluster shop-week-example-0001, stopped cleanly;")
    assert others == [
        f"also there: {deleted}, {size_text(size)}: the directory is marked for deletion: its "
        "topic or this replica was deleted",
        f"also there: {copy}/lost+found, {copy}/orders-1/notes.txt, 5 B: not a file that brokers "
        "write",
        f"also there: {copy}/orders-0: 2 entries, 10 B: removed by retention, the cleaner or a "
        "truncation",
    ]
    assert run(copy, "--format", "json")[2].splitlines() == [first, *others, total]


def test_kinds_of_files_sum_up_to_what_du_counts(unpacked: Unpacked) -> None:
    logs = unpacked("kafka44.logs") / "log-dirs"
    names = b"\0".join(os.fsencode(path) for path in logs.rglob("*") if path.is_file())
    du = ["du", "--bytes", "--total", "--files0-from=-"]
    told = subprocess.run(du, input=names, capture_output=True, check=True).stdout
    found = {row["kind"]: row for row in rows(logs, "--by", "kind")}
    assert sum(row["size"] for row in found.values()) == int(told.splitlines()[-1].split()[0])
    deleted = [path for path in logs.glob("*-delete/*") if path.is_file()]
    assert found["-delete"]["size"] == sum(path.stat().st_size for path in deleted) > 0
    assert found["-delete"]["files"] == len(deleted)


def test_links_count_only_if_they_are_partitions(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(SHOP, tmp_path / "logs"))
    before = rows(copy, "--by", "kind")
    elsewhere = tmp_path / "elsewhere" / "below"
    elsewhere.mkdir(parents=True)
    (elsewhere / "large").write_bytes(bytes(1 << 20))
    (copy / "link").symlink_to(elsewhere)
    (copy / "loop").symlink_to(copy)
    (copy / "moved-0").symlink_to(elsewhere.parent)
    assert rows(copy, "--by", "kind") == before
    (elsewhere.parent / f"{0:020}.log").write_bytes(b"")
    (segments,) = (row for row in rows(copy, "--by", "kind") if row["kind"] == "segments")
    (earlier,) = (row for row in before if row["kind"] == "segments")
    assert segments["files"] == earlier["files"] + 1


def test_rows_are_sorted_by_what_they_take_by_records_and_by_their_last_record(
    unpacked: Unpacked,
) -> None:
    logs = unpacked("kafka44.logs") / "log-dirs"
    for key, column, sign in (
        ("size", "total_size", -1),
        ("records", "records", -1),
        ("time", "max_timestamp_ms", 1),
    ):
        found = [row[column] for row in rows(logs, "--sort", key)]
        known = [value for value in found if value is not None]
        assert known == sorted(known, key=lambda value: sign * value)
        assert found == known + [None] * (len(found) - len(known))


def test_what_is_beside_uploaded_segments_is_known(unpacked: Unpacked) -> None:
    # F555: every file there is of the broker's plug-in.
    store = unpacked("tiered43.tiered") / "kafka-tiered-storage"
    sizes = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    code, out, err = run(store)
    assert (code, "also there" in out, err) == (0, False, "")
    assert sum(row["size"] + row["side_bytes"] for row in rows(store)) == sizes


def test_files_of_zookeeper_are_named_and_left_to_others(unpacked: Unpacked) -> None:
    folder = unpacked("kafka39zk.zookeeper") / "zookeeper-live"
    code, _, err = run(folder)
    assert (code, 'read them with format("zookeeper")' in err) == (3, True)
    code, out, err = run(folder, SHOP)
    assert (code, "orders" in out, 'format("zookeeper")' in err) == (0, True, True)


def test_damaged_segments_are_listed_as_far_as_headers_tell(tmp_path: Path) -> None:
    copy = tmp_path / "orders-0"
    shutil.copytree(SHOP / "orders-0", copy)
    segment = copy / f"{0:020d}.log"
    segment.write_bytes(segment.read_bytes()[:20_000] + b"\xff" * 5000)
    row, _ = rows(copy, "--by", "segment", "--deep")
    assert row["size"] == 25_000
    assert 0 < row["batches"] < rows(SHOP / "orders-0", "--by", "segment")[0]["batches"]


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        ((SHOP, "--quick", "--deep"), 2, "--quick cannot be used with --deep"),
        ((SHOP, "--quick", "--sort", "time"), 2, "--quick cannot be used with --sort time"),
        ((SHOP, "--topic", "none"), 2, "what the log directories hold: __consumer_offsets"),
        (("/nowhere",), 3, "no such file or directory"),
    ],
    ids=str,
)
def test_wrong_arguments_and_paths_are_named(
    asked: tuple[object, ...], code: int, said: str
) -> None:
    found, out, err = run(*asked)
    assert (found, out) == (code, "")
    assert said in err


@pytest.mark.parametrize(
    "command", [["ls"], ["check"], ["txns"], ["find", "--key", "k"]], ids=lambda words: words[0]
)
def test_a_partition_that_only_checkpoints_know_is_not_taken_for_a_misspelt_one(
    command: list[str], unpacked: Unpacked, tmp_path: Path
) -> None:
    # F588: the broker's checkpoints name it.
    logs = tmp_path / "log-dirs"
    shutil.copytree(unpacked("kafka44.logs") / "log-dirs", logs)
    shutil.rmtree(logs / "shop.tx.out-0")
    result = CliRunner().invoke(kafkalog, [*command, str(logs), "--topic", "shop.tx.out"])
    assert (result.exit_code, result.stdout, result.stderr) == (
        3,
        "",
        f"error: missing: 1 partition that the checkpoints of {logs} name: shop.tx.out-0\n",
    )


def test_unread_topics_are_those_without_a_group_in_the_brokers_answers(unpacked: Unpacked) -> None:
    # F591
    logs, golden = unpacked("kafka44.logs") / "log-dirs", unpacked("kafka44.golden")
    answers = json.loads((golden / "admin.json").read_text())
    committed = {
        place.rpartition("-")[0]
        for group in answers["groups"].values()
        for place in group.get("offsets", {})
    }
    shared = (golden / "tools" / "share_groups_describe.txt").read_text()
    own = {topic for topic in answers["topics"] if not topic.startswith("__")}
    read = {topic for topic in own if topic in committed or f" {topic} " in shared}
    assert read
    assert {row["topic"] for row in rows(logs, "--unread")} == own - read


def test_unread_is_not_claimed_while_commits_are_missing(
    unpacked: Unpacked, tmp_path: Path
) -> None:
    # F940
    copy = tmp_path / "logs"
    left_out = shutil.ignore_patterns("shop.[!i]*")
    shutil.copytree(unpacked("kafka44.logs") / "log-dirs", copy, ignore=left_out)
    for log in copy.glob("__consumer_offsets-*/*.log"):
        log.write_bytes(b"")
    code, out, err = run(copy, "--unread")
    assert code == 3
    assert "have no commit of a group by those commits that are here; " in out + err
    assert "offsets are missing: " in out + err


def test_topics_that_brokers_make_for_themselves_have_no_savings(unpacked: Unpacked) -> None:
    # F592
    logs = unpacked("tiered43.logs") / "log-dirs"
    whole = {row["topic"] for row in rows(logs)}
    assert {"__remote_log_metadata", "__transaction_state"} < whole
    assert {row["topic"] for row in rows(logs, "--savings")} <= {
        topic for topic in whole if not topic.startswith("__")
    }


def test_the_last_line_sums_up_what_a_change_saves_in_all_topics(unpacked: Unpacked) -> None:
    logs = unpacked("kafka44.logs") / "log-dirs"
    given = ("--topic", "shop.codec-none", "--topic", "shop.codec-lz4", "--savings")
    in_zstd = sum(
        row["saves"] for row in rows(logs, *given) if row["change"] == "compression.type=zstd"
    )
    _, out, _ = run(logs, *given)
    (said,) = (line for line in out.splitlines() if line.startswith("in all topics: "))
    assert f"compression.type=zstd saves {size_text(in_zstd)}" in said
    _, out, _ = run(logs, *given[2:])
    assert out and "in all topics: " not in out


def test_groups_in_zookeeper_read_topics_too(unpacked: Unpacked) -> None:
    # F591: what ConsumerOffsetChecker printed, of both stores.
    logs = unpacked("kafka08.logs") / "log-dirs"
    zookeeper = unpacked("kafka08.zookeeper") / "zookeeper-live"
    printed = [
        line.split()
        for path in unpacked("kafka08.golden").glob("tools/offset_checker_*.txt")
        for line in path.read_text().splitlines()[1:]
    ]
    whole = {row["topic"] for row in rows(logs)} - {"__consumer_offsets"}
    read = {topic for _, topic, *_ in printed}
    assert {row["topic"] for row in rows(logs, zookeeper, "--unread")} == whole - read
    in_kafka = {topic for group, topic, *_ in printed if group.endswith(("-kafka", "-dual"))}
    assert {row["topic"] for row in rows(logs, "--unread")} == whole - in_kafka


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--savings", "--by", "segment"), "--savings cannot be used with --by segment"),
        (("--savings", "--sample-size", "much"), "--sample-size: 'much' is not a size"),
        (("--unread", "--topic", "shop.tx"), "there is no partition of __consumer_offsets"),
    ],
)
def test_what_cannot_be_listed_is_said(
    arguments: tuple[str, ...], said: str, unpacked: Unpacked
) -> None:
    code, _, err = run(unpacked("kafka44.logs") / "log-dirs" / "shop.tx-0", *arguments)
    assert (code != 0, said in err) == (True, True), err
