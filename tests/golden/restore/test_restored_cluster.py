"""A cluster of three real brokers, whose disks were copied at three seconds while clients wrote,
restored as of a moment before the first copy. What must be there is what clients knew at the
time: tests/golden/README.md, set restore44."""

import json
import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from kafkalog.format.side_files.producer_snapshot import read_producer_snapshot
from kafkalog.inspection.metadata.copies import metadata_copies
from kafkalog.inspection.metadata.replay import image_at
from kafkalog.messages.internal_records import read_internal_record
from kafkalog.storage.partition_log import topic_id
from tests.support.golden.restored_copies import (
    AS_OF,
    AS_OF_MS,
    CONTINUOUS,
    MARGIN_S,
    MARKED,
    Restored,
    Unpacked,
    batches,
    end_of,
    group_epochs,
    group_records,
    logs_of,
    old_ends,
    records,
    restore,
)


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
    before = group_epochs(restored.inputs)
    assert before
    after = group_epochs([restored.data])
    assert all(epoch > before[group] for group, epoch in after.items())
    for log in restored.logs().values():
        for name, _, value in group_records(log):
            assert "Member" not in name
            assert not value.get("members")
            if name == "OffsetCommit":
                assert value["commitTimestamp"] == restored.manifest["restored_at_ms"]


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
    """F1036 to F1040, F1047, F1061 and F1310."""
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
    assert left_out["again"] == "deleted before the moment, or created and deleted after it"
    assert image.tables["broker"] == {}
    assert {key[0] for key in image.tables["user"]} == {"alice"}
    epochs: dict[Any, int] = defaultdict(int)
    for path in restored.inputs:
        before = image_at(metadata_copies([str(path)])[0].log).image
        for key, partition in before.tables["partition"].items():
            epochs[key] = max(epochs[key], partition["leader_epoch"])
    for key, partition in image.tables["partition"].items():
        assert partition["replicas"] == partition["isr"] == [1]
        assert (partition["leader"], partition["last_known_elr"]) == (-1, [1])
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
