"""A cluster of three real brokers, whose disks were copied at three seconds while clients wrote,
restored as of a moment before the first copy. What must be there is what clients knew at the
time: tests/golden/README.md, set restore44."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.exit_codes import ExitCode
from kafkalog.format.batch_header import BatchHeader, read_header
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from kafkalog.format.side_files.producer_snapshot import read_producer_snapshot
from kafkalog.inspection.metadata.copies import metadata_copies
from kafkalog.inspection.metadata.replay import image_at
from kafkalog.messages.internal_records import read_internal_record
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog, topic_id
from kafkalog.storage.reading.log_reader import LogReader

Unpacked = Callable[[str], Path]
Row = Mapping[str, Any]

AS_OF_MS = 1795636120000
AS_OF = "2026-11-25T19:48:40Z"
# Clients' clocks, linger, and what was under way.
MARGIN_S = 2.0
CONTINUOUS = ("transfers", "events", "plain", "derived", "doomed", "new-early")
MARKED = re.compile(r"(\.lock|\.kafka_cleanshutdown|-stray|-delete|\.deleted|\.cleaned|\.swap)$")
CHUNK = 1024 * 1024


class Restored(NamedTuple):
    """A restored directory, its manifest, and what was given."""

    directory: Path
    manifest: dict[str, Any]
    inputs: list[Path]

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def logs(self) -> dict[tuple[str, int], PartitionLog]:
        return logs_of([self.data])

    def image(self) -> MetadataImage:
        return image_at(metadata_copies([str(self.data)])[0].log).image


def logs_of(paths: list[Path]) -> dict[tuple[str, int], PartitionLog]:
    found = find_partitions(list(map(str, paths)), strict=False)
    return {(log.topic or "", log.partition or 0): log for log in found}


def restore(inputs: list[Path], *arguments: str) -> Result:
    return CliRunner().invoke(kafkalog, ["restore", *map(str, inputs), *arguments])


@pytest.fixture(scope="module")
def restored(inputs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Restored:
    directory = tmp_path_factory.mktemp("restored") / "cluster"
    result = restore(inputs, "--as-of", AS_OF, "--to", str(directory))
    assert result.exit_code == ExitCode.FINDINGS, result.output
    return Restored(directory, json.loads((directory / "manifest.json").read_text()), inputs)


@pytest.fixture(scope="module")
def ledgers(unpacked: Unpacked) -> Callable[[str], list[dict[str, Any]]]:
    folder = unpacked("restore44.golden") / "ledgers"

    def rows(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]

    return rows


Ledgers = Callable[[str], list[dict[str, Any]]]


def records(log: PartitionLog) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of each record but control records."""
    for header, batch in batches(log):
        if not header.is_control:
            for record in batch:
                yield record.offset, record.key, record.value


def batches(log: PartitionLog) -> Iterator[tuple[BatchHeader, list[Any]]]:
    reader = LogReader(log)
    for chunk in reader.chunks(reader.start_offset, CHUNK):
        listed = list(chunk.records())
        for data in chunk.batches():
            header = read_header(data, 0)
            inside = [
                each for each in listed if header.base_offset <= each.offset <= header.last_offset
            ]
            yield header, inside


def end_of(log: PartitionLog) -> int:
    return LogReader(log).end_offset()


def old_ends(inputs: list[Path], ids: Mapping[tuple[str, int], str | None]) -> dict[Any, int]:
    """The last end of each partition in any copy."""
    found: dict[Any, int] = defaultdict(int)
    for path in inputs:
        for key, log in logs_of([path]).items():
            if key in ids and topic_id(log) == ids[key]:
                found[key] = max(found[key], end_of(log))
    return found


def test_all_that_was_acknowledged_before_is_there_and_nothing_later(
    restored: Restored, ledgers: Ledgers
) -> None:
    """F1041 to F1043."""
    logs = restored.logs()
    ids = {key: topic_id(log) for key, log in logs.items()}
    for topic in CONTINUOUS:
        acknowledged = [
            row
            for row in ledgers(topic)
            if row["id"] == ids[topic, row["partition"]] and row["ack"]
        ]
        have = {
            (partition, offset): value
            for (name, partition), log in logs.items()
            if name == topic
            for offset, _, value in records(log)
        }
        assert have
        by_place = {(row["partition"], row["offset"]): row for row in acknowledged}
        starts = {key[1]: log.log_start for key, log in logs.items() if key[0] == topic}
        for place, row in by_place.items():
            is_early = row["ack"] * 1000 <= AS_OF_MS - MARGIN_S * 1000
            if is_early and place[1] >= starts[place[0]]:
                # One record of topic plain was acknowledged (acks=1) and lost by the cluster.
                assert place in have or topic == "plain"
        assert len(by_place.keys() & have.keys()) > 20
        for place, value in have.items():
            sent = by_place.get(place)
            if sent is not None:
                assert sent["call"] * 1000 < AS_OF_MS + MARGIN_S * 1000
                assert topic == "plain" or (value or b"").decode() == sent["value"]


def test_the_last_value_of_each_key_is_that_of_the_moment(
    restored: Restored, ledgers: Ledgers
) -> None:
    """F1041: copies that were cleaned later have lost some of them."""
    wanted: dict[tuple[int, str], tuple[int, str | None]] = {}
    for row in sorted(ledgers("state"), key=lambda row: int(row["offset"])):
        if row["ack"] * 1000 <= AS_OF_MS - MARGIN_S * 1000:
            wanted[row["partition"], row["key"]] = row["offset"], row["value"]
    have: dict[tuple[int, str], list[int]] = defaultdict(list)
    for (topic, partition), log in restored.logs().items():
        if topic == "state":
            for offset, key, _ in records(log):
                have[partition, (key or b"").decode()].append(offset)
    missing = [
        key
        for key, (offset, value) in wanted.items()
        if value is not None and not any(each >= offset for each in have[key])
    ]
    assert len(wanted) > 50
    assert missing == []
    rows = [row for row in restored.manifest["partitions"] if row["topic"] == "state"]
    assert all(row["is_united"] for row in rows)
    assert [row["partition"] for row in rows if row["is_cleaned_beyond"]] == [0]


def test_records_that_a_client_deleted_later_are_named(
    restored: Restored, ledgers: Ledgers
) -> None:
    """F1204: at the moment they were there."""
    (row,) = [row for row in restored.manifest["partitions"] if row["topic"] == "plain"]
    deleted = [
        each
        for each in ledgers("plain")
        if each["ack"]
        and each["ack"] * 1000 <= AS_OF_MS
        and each["offset"] < row["log_start_offset"]
    ]
    assert deleted
    named = f"plain-0: a client has deleted the records before offset {row['log_start_offset']};"
    assert [line for line in restored.manifest["not_exact"] if line.startswith(named)]


def test_transactions_are_whole_and_none_is_open(restored: Restored, ledgers: Ledgers) -> None:
    """F1048 and F1049: what a reader of committed records sees."""
    logs = restored.logs()
    seen: dict[str, int] = defaultdict(int)
    total = 0
    for key in [key for key in logs if key[0] in ("transfers", "derived")]:
        listed = list(batches(logs[key]))
        # A transaction of a producer ends with its next marker.
        for place, (header, held) in enumerate(listed):
            if header.is_control or not header.is_transactional:
                continue
            marker = next(
                later
                for later, _ in listed[place:]
                if later.is_control and later.producer_id == header.producer_id
            )
            (control,) = [
                inside
                for later, inside in listed[place:]
                if later.base_offset == marker.base_offset
            ]
            if control[0].key[3] == 1:
                for record in held:
                    value = json.loads(record.value)
                    seen[value["tx"]] += 1
                    total += value.get("amt", 0) if key[0] == "transfers" else 0
    transactions = {}
    for row in ledgers("txns"):
        if row["outcome"] != "open" or row["tx"] not in transactions:
            transactions[row["tx"]] = row
    for name, row in transactions.items():
        assert seen[name] in (0, row["records"])
        if row["outcome"] == "commit" and row["end_return"] * 1000 <= AS_OF_MS - MARGIN_S * 1000:
            assert seen[name] == row["records"]
        if row["outcome"] != "commit" or row["end_call"] * 1000 >= AS_OF_MS + MARGIN_S * 1000:
            assert not (row["outcome"].startswith("abort") and seen[name])
    assert total == 0
    assert {row["reason"] for row in restored.manifest["transactions"]} == {"ongoing at the moment"}


def test_coordinators_of_transactions_know_only_ended_ones(restored: Restored) -> None:
    """F1049 and F1055."""
    states = {}
    for (topic, _), log in restored.logs().items():
        if topic == "__transaction_state":
            for _, key, value in records(log):
                read = read_internal_record(topic, key, value)
                assert read.key is not None
                assert read.value is not None
                states[read.key["transactionalId"]] = read.value
    assert {"tx-a", "tx-java", "cpp"} <= states.keys()
    for state in states.values():
        assert state["transactionStatus"] in (0, 4, 5)
        assert state["transactionLastUpdateTimestampMs"] == restored.manifest["restored_at_ms"]
    highest: dict[str, int] = defaultdict(int)
    for path in restored.inputs:
        for (topic, _), log in logs_of([path]).items():
            if topic == "__transaction_state":
                for _, key, value in records(log):
                    read = read_internal_record(topic, key, value)
                    if read.key and read.value:
                        name = read.key["transactionalId"]
                        highest[name] = max(highest[name], read.value["producerEpoch"])
    assert all(value["producerEpoch"] > highest[name] for name, value in states.items())


def test_groups_are_those_of_the_moment(restored: Restored, ledgers: Ledgers) -> None:
    """F1052 to F1055."""
    ends = {(row["topic"], row["partition"]): row for row in restored.manifest["partitions"]}
    commits = {
        (row["group_id"], row["topic"], row["partition"]): row
        for row in restored.manifest["commits"]
    }
    allowed: dict[Any, set[int]] = defaultdict(set)
    for row in sorted(
        (row for row in ledgers("commits") if row.get("ok")), key=lambda row: float(row["after"])
    ):
        key = row["group"], row["topic"], row["partition"]
        if float(row["after"]) * 1000 <= AS_OF_MS - MARGIN_S * 1000:
            allowed[key] = {row["offset"]}
        elif float(row.get("call") or row["before"]) * 1000 < AS_OF_MS + MARGIN_S * 1000:
            allowed[key].add(row["offset"])
    assert {key[0] for key in commits} >= {"g-classic", "g-consumer", "g-cpp", "g-early"}
    for key, row in commits.items():
        cut = ends[key[1:]]["cut_offset"]
        assert row["committed_offset"] in {min(each, cut) for each in allowed[key]}
    written = _group_records(restored.logs())
    before: dict[tuple[str, str], int] = defaultdict(int)
    for path in restored.inputs:
        for name, group, value in _group_records(logs_of([path])):
            if name in ("GroupMetadata", "ConsumerGroupMetadata"):
                epoch: int = value["generation" if "generation" in value else "epoch"]
                before[name, group] = max(before[name, group], epoch)
    for name, group, value in written:
        assert "Member" not in name
        if name in ("GroupMetadata", "ConsumerGroupMetadata"):
            assert value["generation" if "generation" in value else "epoch"] > before[name, group]
            assert not value.get("members")
        if name == "OffsetCommit":
            assert value["commitTimestamp"] == restored.manifest["restored_at_ms"]


def _group_records(
    logs: Mapping[tuple[str, int], PartitionLog],
) -> list[tuple[str, Any, dict[str, Any]]]:
    found = []
    for (topic, _), log in logs.items():
        if topic == "__consumer_offsets":
            for _, key, value in records(log):
                read = read_internal_record(topic, key, value)
                if read.key is not None and read.value is not None:
                    group = read.key.get("group", read.key.get("groupId"))
                    found.append((read.name or "", group, read.value))
    return found


def test_share_groups_begin_at_most_at_the_cut(restored: Restored, ledgers: Ledgers) -> None:
    """F1056."""
    ends = {(row["topic_id"], row["partition"]): row for row in restored.manifest["partitions"]}
    done: dict[int, set[int]] = defaultdict(set)
    for row in ledgers("share"):
        if row["ok"] and row["act"] != "release" and row["before"] * 1000 < AS_OF_MS + 2000:
            done[row["partition"]].add(row["offset"])
    states = 0
    for (topic, _), log in restored.logs().items():
        if topic != "__share_group_state":
            continue
        for _, key, value in records(log):
            read = read_internal_record(topic, key, value)
            assert read.key is not None
            assert read.value is not None
            row = ends[read.key["topicId"], read.key["partition"]]
            start = read.value["startOffset"]
            assert start <= row["cut_offset"]
            assert set(range(start)) <= done[read.key["partition"]]
            assert all(each["deliveryState"] != 1 for each in read.value["stateBatches"])
            states += 1
    assert states == 4


def test_offsets_beyond_the_cut_are_not_used_again(restored: Restored) -> None:
    """F1045 and F1046."""
    logs = restored.logs()
    ends = old_ends(restored.inputs, {key: topic_id(log) for key, log in logs.items()})
    checkpoint = (restored.data / "replication-offset-checkpoint").read_text()
    written = read_offset_checkpoint(checkpoint)
    starts = read_offset_checkpoint((restored.data / "log-start-offset-checkpoint").read_text())
    assert starts["plain", 0] == 60
    for key, log in logs.items():
        if key[0] != "__cluster_metadata":
            # Not even those that the cluster can have written after the copies were made.
            gap = 0 if key[0].startswith("__") else 1_000_000
            assert end_of(log) >= ends[key] + gap
            assert written[key] == end_of(log)
    for row in restored.manifest["partitions"]:
        log = logs[row["topic"], row["partition"]]
        beyond = [offset for offset, _, _ in records(log) if offset >= row["cut_offset"]]
        assert beyond == []


def test_bytes_below_the_cut_are_those_of_a_copy(restored: Restored) -> None:
    """F1044."""
    for row in restored.manifest["partitions"]:
        if row["is_united"]:
            continue
        copy = b"".join(_log_files(Path(row["copy"])))
        written = b"".join(_log_files(restored.data / f"{row['topic']}-{row['partition']}"))
        assert written[: row["bytes"]] == copy[: row["bytes"]]
    indexes = [path.stat().st_size for path in restored.data.glob("*-*/*.timeindex")]
    assert max(indexes) < 4000  # preallocated ones of the copies have 4092 bytes
    checked = CliRunner().invoke(kafkalog, ["check", str(restored.data)])
    assert checked.exit_code == ExitCode.DONE, checked.output
    assert "indexes sound" in checked.output


def _log_files(directory: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(directory.glob("*.log"))]


def test_producers_at_the_end_are_those_at_the_cut(restored: Restored) -> None:
    """F1051."""
    for row in restored.manifest["partitions"]:
        directory = restored.data / f"{row['topic']}-{row['partition']}"
        last = max(directory.glob("*.snapshot"), default=None)
        seen = {
            header.producer_id
            for header, _ in batches(restored.logs()[row["topic"], row["partition"]])
            if header.producer_id >= 0
        }
        entries = [] if last is None else read_producer_snapshot(last.read_bytes())
        assert {entry.producer_id for entry in entries} == seen
        assert all(entry.transaction_first_offset == -1 for entry in entries)


def test_ids_are_new_where_nodes_go_by_them_and_kept_where_clients_do(restored: Restored) -> None:
    """F1031, F1032, F1034 and F1035."""
    properties = dict(
        line.split("=", 1)
        for line in (restored.data / "meta.properties").read_text().splitlines()
        if "=" in line
    )
    before = "".join((path / "meta.properties").read_text() for path in restored.inputs)
    assert properties["cluster.id"] not in before
    assert properties["directory.id"] not in before
    image = restored.image()
    for (identity, number), row in image.tables["partition"].items():
        topic = image.tables["topic"][identity,]["topic"]
        assert row["directories"] == [properties["directory.id"]]
        assert topic_id(restored.logs()[topic, number]) == identity
    on_disk = {key for key in restored.logs() if key[0] != "__cluster_metadata"}
    assert len(on_disk) == len(image.tables["partition"])
    kept = restore(
        restored.inputs, "--as-of", AS_OF, "--keep-cluster-id", "--check", "--format", "json"
    )
    assert f"cluster.id={json.loads(kept.stdout)['cluster_id']}" in before


def test_nothing_else_is_in_the_directory(restored: Restored) -> None:
    """F1033."""
    assert [path for path in restored.directory.rglob("*") if MARKED.search(path.name)] == []


def test_metadata_is_that_of_the_moment(restored: Restored, ledgers: Ledgers) -> None:
    """F1036 to F1040, F1047 and F1061."""
    image = restored.image()
    topics = {row["topic"] for row in image.tables["topic"].values()}
    names: set[str] = set()
    for row in ledgers("metadata"):
        if row.get("ok") and row["after"] * 1000 <= AS_OF_MS:
            if row["what"] == "create_topic":
                names.add(row["topic"])
            elif row["what"] == "delete_topic":
                names.discard(row["topic"])
    assert {topic for topic in topics if not topic.startswith("__")} == names
    left_out = {row["topic"]: row["reason"] for row in restored.manifest["left_out"]}
    assert left_out["new-late"] == "created after the moment"
    assert left_out["again"] == "deleted before the moment"
    assert image.tables["broker"] == {}
    assert {key[0] for key in image.tables["user"]} == {"alice"}
    epochs: dict[Any, int] = defaultdict(int)
    for path in restored.inputs:
        before = image_at(metadata_copies([str(path)])[0].log).image
        for key, partition in before.tables["partition"].items():
            epochs[key] = max(epochs[key], partition["leader_epoch"])
    for key, partition in image.tables["partition"].items():
        assert partition["replicas"] == partition["isr"] == [1]
        assert partition["leader_epoch"] > epochs[key]
        assert not partition["adding_replicas"]
        assert not partition["eligible_leader_replicas"]
    configs = {key: row["value"] for key, row in image.tables["config"].items()}
    assert all(value == "1" for key, value in configs.items() if key[2] == "min.insync.replicas")
    assert configs["topic", "events", "retention.ms"] == "-1"
    assert configs["topic", "plain", "retention.bytes"] == "-1"
    undo = {(row["name"], row["config"]): row["undo"] for row in restored.manifest["configs"]}
    assert "--add-config retention.ms=3600000" in undo["events", "retention.ms"]
    assert "--delete-config retention.ms" in undo["plain", "retention.ms"]


def test_the_next_producer_id_is_above_all(restored: Restored) -> None:
    """F1050: ids of the block from 3000 on were used after the first copy."""
    image = restored.image()
    following = image.tables["producer_ids"][()]["next_producer_id"]
    assert following % 1000 == 0
    highest = 0
    for path in restored.inputs:
        for log in logs_of([path]).values():
            highest = max([highest, *(header.producer_id for header, _ in batches(log))])
        highest = max(
            highest,
            image_at(metadata_copies([str(path)])[0].log).image.tables["producer_ids"][()][
                "next_producer_id"
            ]
            - 1,
        )
    assert following > highest >= 3000


def test_the_manifest_says_what_is_there(restored: Restored, tmp_path: Path) -> None:
    """F1062 and F1065."""
    assert restored.manifest["as_of_ms"] == AS_OF_MS
    assert restored.manifest["least_release"] == "4.4"
    assert len(restored.manifest["inputs"]) == 3
    copy = tmp_path / "copy"
    shutil.copytree(restored.directory, copy)
    sound = CliRunner().invoke(kafkalog, ["restore", "--verify", str(copy)])
    assert sound.exit_code == ExitCode.DONE, sound.output
    log = copy / "data" / "events-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes()[:-1] + b"?")
    (copy / "data" / "events-1" / f"{0:020}.log").unlink()
    (copy / "data" / "more").write_text("")
    changed = CliRunner().invoke(kafkalog, ["restore", "--verify", str(copy)])
    assert changed.exit_code == ExitCode.FINDINGS
    assert len(changed.output.splitlines()) == 3
    for words in ("has changed", "is missing", "was not written by the restore"):
        assert words in changed.output


def digests(paths: list[Path]) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in paths
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_nothing_is_left_of_a_restore_that_fails(
    inputs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1030."""
    before = digests(inputs)
    there = tmp_path / "there"
    there.mkdir()
    refused = restore(inputs, "--to", str(there))
    assert refused.exit_code == ExitCode.UNREADABLE_INPUT
    assert "exists" in refused.output

    def no_space(*_arguments: object) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "copy_file_range", no_space)
    monkeypatch.setattr(os, "write", no_space)
    target = tmp_path / "new" / "cluster"
    full = restore(inputs, "--to", str(target), "--processes", "1")
    assert full.exit_code != ExitCode.DONE
    assert list(target.parent.iterdir()) == []
    assert digests(inputs) == before


def test_nothing_that_boots_is_left_of_a_restore_that_is_killed(
    inputs: list[Path], tmp_path: Path
) -> None:
    """F1030: the next run removes what the killed ones have left."""
    target = tmp_path / "new" / "cluster"
    target.parent.mkdir()
    command = [sys.executable, "-m", "kafkalog", "restore", *map(str, inputs), "--as-of", AS_OF]
    for tenths in range(5):
        process = subprocess.Popen(
            [*command, "--to", str(target)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while not any(target.parent.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(tenths / 10)
        process.kill()
        process.wait()
        if target.exists():  # it was faster than its end
            assert (target / "manifest.json").exists()
            shutil.rmtree(target)
        assert not list(tmp_path.glob("new/[!.]*"))
    last = subprocess.run([*command, "--to", str(target)], check=False, capture_output=True)
    assert last.returncode == ExitCode.FINDINGS, last.stderr
    assert [path.name for path in target.parent.iterdir()] == ["cluster"]


def test_strict_writes_nothing_that_is_not_exact(inputs: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "cluster"
    result = restore(inputs, "--as-of", AS_OF, "--to", str(target), "--strict")
    assert result.exit_code == ExitCode.UNREADABLE_INPUT
    assert "state-0: the cleaner of each copy has looked at records after the cut" in result.output
    assert not target.exists()


def test_moments_that_copies_do_not_cover_are_said(inputs: list[Path]) -> None:
    """F1042."""
    late = restore(inputs, "--as-of", "2026-11-25T19:50:00Z", "--check")
    assert late.exit_code == ExitCode.UNREADABLE_INPUT
    assert "no disk covers that moment" in late.output
    early = restore(inputs, "--as-of", "2026-11-25T00:00:00Z", "--check")
    assert early.exit_code == ExitCode.UNREADABLE_INPUT
    assert "the cluster had no topic at 2026-11-25T00:00:00.000Z" in early.output
    between = restore(inputs[:2], "--as-of", "2026-11-25T19:48:48.900Z", "--check")
    assert between.exit_code == ExitCode.UNREADABLE_INPUT
    exact = restore(inputs, "--as-of", "2026-11-25T19:48:41.800Z", "--check", "--format", "json")
    # A client has deleted records of topic plain at some time: F1204.
    assert [line.split(":")[0] for line in json.loads(exact.output)["not_exact"]] == ["plain-0"]


def test_disks_of_a_cluster_with_zookeeper_are_refused(unpacked: Unpacked) -> None:
    disks = sorted((unpacked("kafka39zk.logs") / "log-dirs").iterdir())
    refused = restore(disks, "--check")
    assert refused.exit_code == ExitCode.UNREADABLE_INPUT
    assert "clusters with ZooKeeper" in refused.output


def test_partitions_that_only_earlier_copies_have_are_said(
    inputs: list[Path], tmp_path: Path
) -> None:
    """F1042: of events-1 only the first copy is left, which is from before the moment."""
    copies = [inputs[0]]
    for number, path in enumerate(inputs[1:]):
        copies.append(tmp_path / f"copy{number}" / "data")
        shutil.copytree(path, copies[-1])
        shutil.rmtree(copies[-1] / "events-1")
    result = restore(
        copies,
        "--as-of",
        "2026-11-25T19:48:48Z",
        "--check",
        "--format",
        "json",
        "--topic",
        "events",
    )
    assert result.exit_code == ExitCode.FINDINGS
    lines = [each for each in json.loads(result.stdout)["not_exact"] if "events" in each]
    assert lines[0].startswith(
        "events-1: no copy goes up to the moment: records after 2026-11-25T19:48:41"
    )
    # F1216: consumers had read on.
    assert lines[1].startswith("events-1: group g-")
    assert "and the copies end at " in lines[1]


def test_a_copy_that_took_long_is_known_by_its_checkpoints(
    inputs: list[Path], tmp_path: Path
) -> None:
    """F1216: the log of plain-0 was copied before the checkpoints beside it. F1217: the cleaner was
    at work after its checkpoint was copied."""
    copy = tmp_path / "copy" / "data"
    shutil.copytree(inputs[2], copy)
    for log in sorted((copy / "plain-0").glob("*.log"))[-3:]:
        log.unlink()
    checkpoint = copy / "cleaner-offset-checkpoint"
    lines = [line for line in checkpoint.read_text().splitlines()[2:] if "state" not in line]
    checkpoint.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    found = restore([copy], "--as-of", "2026-11-25T19:48:59Z", "--check", "--format", "json")
    lines = json.loads(found.stdout)["not_exact"]
    assert any(line.startswith("plain-0: a checkpoint beside a copy has offset") for line in lines)
    cleaned = "the cleaner of each copy has looked at records after the cut"
    assert sum(cleaned in line for line in lines) == 2


def test_topics_are_chosen_and_some_are_taken_later(inputs: list[Path]) -> None:
    """F1037, F1052 and F1057."""
    result = restore(
        inputs, "--as-of", AS_OF, "--check", "--format", "json", "--topic-pattern", "^events|^pla",
        "--latest-topics", "plain", "--group-pattern", "classic",
    )  # fmt: skip
    found = json.loads(result.stdout)
    assert {row["topic"] for row in found["partitions"]} == {"events", "plain"}
    assert {row["group_id"] for row in found["commits"]} == {"g-classic"}
    (plain,) = [row for row in found["partitions"] if row["topic"] == "plain"]
    assert plain["cut_offset"] == plain["old_end_offset"]
    reasons = {row["topic"]: row["reason"] for row in found["left_out"]}
    assert reasons["transfers"] == "not chosen"


def test_topics_without_a_copy_are_left_out_or_begin_empty(
    inputs: list[Path], tmp_path: Path
) -> None:
    """F1037."""
    copies = []
    for number, path in enumerate(inputs):
        copies.append(tmp_path / f"copy{number}" / "data")
        shutil.copytree(path, copies[-1])
        shutil.rmtree(copies[-1] / "events-2", ignore_errors=True)
    arguments = ("--as-of", AS_OF, "--check", "--format", "json")
    found = json.loads(restore(copies, *arguments).stdout)
    (reason,) = [row["reason"] for row in found["left_out"] if row["topic"] == "events"]
    assert reason == "no disk has a copy of 1 of its 4 partitions"
    assert all(row["topic"] != "events" for row in found["commits"])
    made = json.loads(restore(copies, *arguments, "--create-missing").stdout)
    assert [(row["topic"], row["partition"]) for row in made["begin_empty"]] == [("events", 2)]
    (clipped,) = [
        row
        for row in made["commits"]
        if (row["group_id"], row["partition"]) == ("g-classic", 2) and row["topic"] == "events"
    ]
    assert clipped["committed_offset"] == 0
    assert clipped["is_clipped"]


def test_damage_is_left_out_and_named(inputs: list[Path], tmp_path: Path) -> None:
    """F1064."""
    copies = []
    for number, path in enumerate(inputs):
        copies.append(tmp_path / f"copy{number}" / "data")
        shutil.copytree(path, copies[-1])
        log = copies[-1] / "events-0" / f"{0:020}.log"
        data = bytearray(log.read_bytes())
        data[len(data) // 2 + 40] ^= 0xFF
        log.write_bytes(data)
    target = tmp_path / "restored"
    result = restore(copies, "--as-of", AS_OF, "--to", str(target))
    assert result.exit_code == ExitCode.FINDINGS, result.output
    manifest = json.loads((target / "manifest.json").read_text())
    (row,) = [row for row in manifest["partitions"] if row["lost"]]
    assert (row["topic"], row["partition"]) == ("events", 0)
    assert row["lost"][0]["reason"] == "checksum"
    assert any("events-0" in line and "are left out" in line for line in manifest["not_exact"])


def test_what_is_damaged_in_one_copy_is_taken_from_another(
    inputs: list[Path], tmp_path: Path
) -> None:
    """F1219: of each copy another batch is damaged; the end of the longest is torn."""
    copies = []
    for number, path in enumerate(inputs):
        copies.append(tmp_path / f"copy{number}" / "data")
        shutil.copytree(path, copies[-1])
        log = copies[-1] / "events-0" / f"{0:020}.log"
        data = bytearray(log.read_bytes())
        data[1000 + 2000 * number] ^= 0xFF
        log.write_bytes(data)
    torn = max((copies[-1] / "plain-0").glob("*.log"))
    torn.write_bytes(torn.read_bytes()[:-7])
    found = json.loads(restore(copies, "--as-of", AS_OF, "--check", "--format", "json").stdout)
    sound = json.loads(restore(inputs, "--as-of", AS_OF, "--check", "--format", "json").stdout)
    for row, before in zip(found["partitions"], sound["partitions"], strict=True):
        assert row["lost"] == []
        for name in ("topic", "partition", "cut_offset", "records"):
            assert row[name] == before[name]


def test_several_nodes_get_a_directory_each(inputs: list[Path], tmp_path: Path) -> None:
    """F1034 and F1038."""
    target = tmp_path / "cluster"
    nodes = "1@h1:9092/9093,2@h2:9092/9093,3@h3:9092/9093"
    result = restore(
        inputs, "--as-of", AS_OF, "--to", str(target), "--nodes", nodes, "--replication", "3"
    )
    assert result.exit_code == ExitCode.FINDINGS, result.output
    directories = [target / f"node-{number}" for number in (1, 2, 3)]
    ids = set()
    for directory in directories:
        text = (directory / "server.properties").read_text()
        assert "controller.quorum.voters=1@h1:9093,2@h2:9093,3@h3:9093" in text
        ids.add((directory / "data" / "meta.properties").read_text())
    assert len(ids) == 3
    image = image_at(metadata_copies([str(directories[0] / "data")])[0].log).image
    for row in image.tables["partition"].values():
        assert sorted(row["replicas"]) == sorted(row["isr"]) == [1, 2, 3]
    configs = {key: row["value"] for key, row in image.tables["config"].items()}
    assert configs["topic", "state", "min.insync.replicas"] == "2"


def test_links_keep_the_bytes_of_whole_segments(inputs: list[Path], tmp_path: Path) -> None:
    """F1044."""
    copies = [tmp_path / f"copy{number}" / "data" for number in range(len(inputs))]
    for source, copy in zip(inputs, copies, strict=True):
        shutil.copytree(source, copy)
    target = tmp_path / "restored"
    result = restore(copies, "--as-of", AS_OF, "--to", str(target), "--link")
    assert result.exit_code == ExitCode.FINDINGS, result.output
    logs = sorted((target / "data" / "plain-0").glob("*.log"))
    linked = [path for path in logs if path.stat().st_nlink > 1]
    assert linked
    # What a broker appends to is its own.
    assert logs[-1] not in linked


def test_the_disks_of_one_node_are_not_cut_unless_a_time_is_given(
    unpacked: Unpacked, tmp_path: Path
) -> None:
    """F1042: the topics of this broker have records of times to come."""
    target = tmp_path / "restored"
    log_dir = unpacked("kafka44.logs") / "log-dirs"
    result = restore([log_dir], "--to", str(target))
    assert result.exit_code in (ExitCode.DONE, ExitCode.FINDINGS), result.output
    manifest = json.loads((target / "manifest.json").read_text())
    assert manifest["partitions"]
    before, after = logs_of([log_dir]), logs_of([target / "data"])
    for row in manifest["partitions"]:
        assert row["cut_offset"] == row["old_end_offset"]
        if not row["is_united"]:
            key = row["topic"], row["partition"]
            assert list(records(before[key])) == list(records(after[key]))


def test_what_only_the_tier_has_is_said(unpacked: Unpacked, tmp_path: Path) -> None:
    """F1058."""
    target = tmp_path / "restored"
    result = restore([unpacked("tiered43.logs") / "log-dirs"], "--to", str(target))
    assert result.exit_code == ExitCode.FINDINGS, result.output
    assert "tier.tiered-0: offsets 0 to" in result.output
    image = image_at(metadata_copies([str(target / "data")])[0].log).image
    assert not [key for key in image.tables["config"] if key[2].startswith("remote.")]
    manifest = json.loads((target / "manifest.json").read_text())
    removed = {row["config"] for row in manifest["configs"] if row["after"] is None}
    assert "remote.storage.enable" in removed
