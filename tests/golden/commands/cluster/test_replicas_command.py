"""`kafkalog replicas` on three real brokers that had diverged, against what came of elections.
Rules: F790 to F793, F795."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.broker.cluster.foretold_elections import (
    TOPIC,
    Election,
    WrittenRecord,
    foretold,
    replica_rows,
)
from tests.support.repository import Unpack

BROKERS = (11, 12, 13)


@pytest.fixture
def log_dirs(unpacked: Unpack) -> list[Path]:
    nodes = unpacked("diverged44.logs")
    return [*(nodes / f"node-{broker}" / "data" for broker in BROKERS), nodes / "node-1/metadata"]


def told(unpacked: Unpack) -> tuple[list[WrittenRecord], dict[str, Election]]:
    """The records in each broker's log, by kafka-dump-log, and what came of each election."""
    found = json.loads((unpacked("diverged44.golden") / "elections.json").read_text())
    before = [WrittenRecord(*each) for each in found["before"]]
    return before, {choice: Election(*each) for choice, each in found["after"].items()}


def run(paths: list[Path], *options: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["replicas", *map(str, paths), *options])
    return result.exit_code, result.stdout, result.stderr


def test_what_is_said_is_what_came_of_each_election(log_dirs: list[Path], unpacked: Unpack) -> None:
    before, after = told(unpacked)
    found = foretold(log_dirs, before)
    # JSON has neither tuples nor numbers as keys.
    assert json.loads(json.dumps(found)) == json.loads(json.dumps(after))
    assert all(each.lost for each in found.values())


def test_a_broker_that_stays_away_does_not_lead(log_dirs: list[Path]) -> None:
    rows = replica_rows(log_dirs, "--without", "11")
    assert {row["broker_id"] for row in rows if row["can_lead"]} == {12, 13}
    # Broker 11 led last, and what it wrote is lost as it is when another leads.
    lost = {(row["broker_id"], row["partition"], row["lost_records"]) for row in rows}
    assert lost >= {
        (row["broker_id"], row["partition"], row["lost_records"])
        for row in replica_rows(log_dirs)
        if row["broker_id"] != 11
    }
    code, _, err = run(log_dirs, "--without", "14")
    assert code == 2 and "brokers of the log directories: 11, 12, 13" in err


def test_copies_of_different_seconds_are_told_apart_by_their_newest_records(
    unpacked: Unpack,
) -> None:
    # The nodes were copied at 19:48:42, 19:48:49 and 19:49:01: tests/golden/README.md.
    nodes = sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))
    _, _, err = run(nodes, "--topic", "plain")
    (line,) = (line for line in err.splitlines() if line.startswith("the newest record is "))
    times = re.findall(r"of broker (\d) 2026-11-25T(\d\d:\d\d:\d\d)", line)
    assert times == [("1", "19:48:42"), ("2", "19:48:49"), ("3", "19:49:01")]


def test_partitions_to_elect_are_written_for_the_tool(log_dirs: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "partitions.json"
    code, out, _ = run(log_dirs, "--topic", "orders", "--election-json", str(target))
    assert code == 0
    assert out.splitlines()[-1] == "replicas differ in 2 of 2 partitions"
    named = [{"topic": "orders", "partition": number} for number in (0, 1)]
    assert json.loads(target.read_text()) == {"partitions": named}
    inside = log_dirs[0] / "partitions.json"
    assert run(log_dirs, "--election-json", str(inside))[0] == 2 and not inside.exists()


def test_without_the_clusters_metadata_nobody_knows_who_is_elected(log_dirs: list[Path]) -> None:
    rows = replica_rows(log_dirs[:2])
    assert {(row["is_elected"], row["keep_stopped"]) for row in rows} == {(None, None)}
    needed = "IS-ELECTED and KEEP-STOPPED need the cluster's metadata"
    assert needed in run(log_dirs[:2])[2]
    # With it, replicas that are not here are named.
    code, _, err = run([*log_dirs[:2], log_dirs[3]])
    assert code == 0 and "orders-0 on 13, orders-1 on 13" in err
    assert needed not in err


def kept_records(log_dir: Path) -> list[tuple[int, int, str]]:
    """Partition, offset and value of each data record in a log directory, by kafkalog dump."""
    given = ["dump", "--deep", "--format", "json", str(log_dir)]
    rows = map(json.loads, CliRunner().invoke(kafkalog, given).stdout.splitlines())
    return [
        (row["partition"], row["offset"], row["payload"])
        for row in rows
        if row["type"] == "record" and "payload" in row
    ]


@pytest.mark.parametrize("leader", BROKERS)
def test_what_an_election_loses_is_kept(
    leader: int, log_dirs: list[Path], unpacked: Unpack, tmp_path: Path
) -> None:
    # F795
    before, after = told(unpacked)
    lost = set(after[str(leader)].lost)
    target = tmp_path / "kept"
    options = ("--topic", TOPIC, "--leader", str(leader), "--export", str(target))
    code, out, err = run(log_dirs, *options, "--format", "json")
    assert code == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["broker_id"] for row in rows] == [leader] * 2
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    # Each record once, though two brokers have it.
    table = pq.read_table(target / "lost_records.parquet")
    assert sorted(table["value"].to_pylist()) == sorted(value.encode() for value in lost)
    assert len(table) == sum(row["lost_records"] for row in rows)
    assert all(Path(file).is_file() for file in table["file"].to_pylist())
    for broker in BROKERS:
        own = [each[1:] for each in before if each.broker == broker and each.value in lost]
        kept = target / f"broker-{broker}"
        assert kept.exists() == bool(own)
        if own:
            assert kept_records(kept) == own
            for path in kept.glob("*/*.log"):
                (source,) = (log_dirs[BROKERS.index(broker)] / path.parent.name).glob("*.log")
                assert source.read_bytes().endswith(path.read_bytes())
    others = [str(path) for path in target.glob("broker-*")]
    assert CliRunner().invoke(kafkalog, ["check", *others]).exit_code == 0


def test_without_a_leader_the_first_row_of_each_partition_counts(
    log_dirs: list[Path], tmp_path: Path
) -> None:
    target = tmp_path / "kept"
    options = ("--topic", TOPIC, "--export", str(target), "--format", "json", "--processes", "2")
    code, out, err = run(log_dirs, *options)
    best = [row for row in map(json.loads, out.splitlines()) if row["broker_id"] == 11]
    assert (code, len(best)) == (0, 2)
    records = sum(row["lost_records"] for row in best)
    assert f"{target}: {records} records of 2 partitions in lost_records.parquet, 4 logs" in err
    assert sorted(path.name for path in target.iterdir()) == [
        *("broker-12", "broker-13", "lost_records.parquet")
    ]


def test_nothing_is_kept_in_an_input_or_where_something_is(
    log_dirs: list[Path], tmp_path: Path
) -> None:
    inside = log_dirs[0] / "kept"
    glob = str(log_dirs[0].parent.parent / "node-*" / "*")
    result = CliRunner().invoke(kafkalog, ["replicas", glob, "--export", str(inside)])
    assert (result.exit_code, "a directory outside of" in result.stderr) == (2, True)
    assert not inside.exists()
    code, _, err = run(log_dirs, "--export", str(tmp_path))
    assert (code, "new directories only" in err) == (3, True)
    code, _, err = run(log_dirs, "--leader", "14", "--export", str(tmp_path / "kept"))
    assert (code, "brokers of the log directories: 11, 12, 13" in err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_keeps_nothing(
    log_dirs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_given: object, **_more: object) -> None:
        assert [*tmp_path.rglob("*.log")]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kafkalog.command_line.replicas.lost_records.parquet_writer", fail)
    code, _, err = run(log_dirs, "--topic", TOPIC, "--export", str(tmp_path / "kept"))
    assert (code, "No space left on device" in err) == (3, True)
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_cannot_lead_is_named(log_dirs: list[Path]) -> None:
    code, _, err = run(log_dirs, "--topic", TOPIC, "--leader", "12", "--without", "12")
    assert (code, "broker 12 cannot lead orders-0, orders-1" in err) == (0, True)


def only_on_13(log_dirs: list[Path], tmp_path: Path) -> list[Path]:
    """The directories as copies; the brokers 11 and 12 do not have orders-0 any more."""
    copies = []
    for number, path in enumerate(log_dirs):
        copies.append(tmp_path / "copies" / str(number))
        shutil.copytree(path, copies[-1])
    for copy in copies[:2]:
        shutil.rmtree(copy / "orders-0")
    return copies


def test_a_partition_that_only_excluded_brokers_have_is_lost_as_a_whole(
    log_dirs: list[Path], unpacked: Unpack, tmp_path: Path
) -> None:
    # F928
    copies = only_on_13(log_dirs, tmp_path)
    before, _ = told(unpacked)
    # Each record that kafka-dump-log shows in broker 13's log.
    held = [each for each in before if (each.broker, each.partition) == (13, 0)]
    target, election = tmp_path / "export", tmp_path / "election.json"
    options = ["--topic", "orders", "--without", "13", "--partition", "0"]
    code, out, err = run(
        copies, *options, "--export", str(target), "--election-json", str(election)
    )
    assert code == 1
    assert out.splitlines()[-1] == ("replicas differ in 0 of 1 partition, 1 lost as a whole")
    assert "no replica can lead: orders-0" in err
    # No election brings back what no running broker has.
    assert json.loads(election.read_text()) == {"partitions": []}
    rows = [json.loads(line) for line in run(copies, *options, "--format", "json")[1].splitlines()]
    assert [(row["broker_id"], row["can_lead"], row["lost_records"]) for row in rows] == [
        (13, False, len(held))
    ]
    kept = pq.read_table(target / "lost_records.parquet")
    assert sorted(kept.column("offset").to_pylist()) == sorted(each.offset for each in held)
    original = (copies[2] / "orders-0" / f"{0:020d}.log").read_bytes()
    assert (target / "broker-13/orders-0" / f"{0:020d}.log").read_bytes() == original


def test_a_single_disk_that_stays_away_takes_everything_with_it(log_dirs: list[Path]) -> None:
    # F928
    code, out, _ = run(log_dirs[:1], "--without", "11")
    assert code == 1 and "3 lost as a whole" in out.splitlines()[-1]
    losses = run(log_dirs[:1], "--without", "11", "--by", "loss", "--format", "json")[1]
    found = [json.loads(line) for line in losses.splitlines()]
    assert {row["kind"] for row in found} >= {"records", "commit", "position"}
    assert {row["leader"] for row in found} == {None}


def test_partitions_without_any_replica_under_the_paths_are_named(
    log_dirs: list[Path], tmp_path: Path
) -> None:
    copies = only_on_13(log_dirs, tmp_path)
    named = "without a replica under the paths, which are not in the rows: "
    # The archive does not have the coordinators' partition.
    _, _, err = run([*copies[:2], copies[3]])
    assert f"{named}__transaction_state-0, orders-0\n" in err
    assert f"{named}__transaction_state-0\n" in run(copies)[2]


@pytest.mark.parametrize("text", [None, "", "0\n0\n", "0\n1\n0 0\n"])
def test_epochs_of_the_batches_count_where_the_file_lacks_them(
    log_dirs: list[Path], unpacked: Unpack, tmp_path: Path, text: str | None
) -> None:
    # F929: what came of each election with the files as brokers had written them.
    copies = [tmp_path / "copies" / str(number) for number in range(len(log_dirs))]
    for path, copy in zip(log_dirs, copies, strict=True):
        shutil.copytree(path, copy)
    for copy in copies[:3]:
        file = copy / "orders-0" / "leader-epoch-checkpoint"
        file.unlink()
        if text is not None:
            file.write_text(text)
    before, after = told(unpacked)
    assert json.loads(json.dumps(foretold(copies, before))) == json.loads(json.dumps(after))
    rows = [row for row in replica_rows(copies) if row["topic"] == TOPIC]
    notes = {row["broker_id"]: row["damage"] for row in rows if row["partition"] == 0}
    assert "the batches have epoch 0 from offset 0, 3 from offset 24, 9" in notes[11]
    deed = "goes by the file" if text == "0\n1\n0 0\n" else "a log without epochs: it truncates"
    assert all(deed in note for note in notes.values())
    assert {row["damage"] for row in rows if row["partition"] == 1} == {None}
    code = CliRunner().invoke(kafkalog, ["check", str(copies[0])]).exit_code
    assert code == 1


def test_what_was_not_read_is_not_called_sound(log_dirs: list[Path], tmp_path: Path) -> None:
    # Two equal replicas, one of which has a damaged batch that neither ends nor epochs show.
    copies = [tmp_path / "copies" / str(number) for number in range(2)]
    for copy in copies:
        shutil.copytree(log_dirs[0], copy)
    properties = copies[1] / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=11", "node.id=12"))
    log = copies[1] / "orders-0" / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    options = ["--topic", "orders", "--all"]

    def damage(*more: str) -> list[tuple[int, int, str | None]]:
        _, out, _ = run(copies, *options, *more, "--format", "json")
        rows = [json.loads(line) for line in out.splitlines()]
        assert {row["batches_read"] for row in rows} == {"all" if more else "none"}
        return sorted((row["partition"], row["broker_id"], row["damage"]) for row in rows)

    assert damage() == [(partition, broker, None) for partition in (0, 1) for broker in (11, 12)]
    _, out, _ = run(copies, *options)
    assert out.splitlines()[0].endswith("  BATCHES-READ")
    assert out.splitlines()[-1] == (
        "replicas differ in 0 of 2 partitions, by ends and leader epochs; the contents of "
        "4 replicas are not compared as a whole: give --deep"
    )
    assert damage("--deep") == [
        (0, 11, None),
        (0, 12, "1 damaged range"),
        (1, 11, None),
        (1, 12, None),
    ]
    _, out, _ = run(copies, *options, "--deep")
    assert "BATCHES-READ" not in out
    assert out.splitlines()[-1] == "replicas differ in 1 of 2 partitions"
