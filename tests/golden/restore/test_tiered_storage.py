"""A cluster with tiered storage, restored with the store: what its consumer got before. Rules:
docs/restore.md F1058, F1202 and F1203; tests/golden/README.md, set tiered43."""

import base64
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.format.batch_header import read_header
from kafkalog.format.record_batch import read_batch
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.reading.log_reader import LogReader
from tests.support.logs.tiered_objects import store_segment

Unpacked = Callable[[str], Path]
TOPICS = ("tier.tiered", "tier.tiered.tx")
CHUNK = 1024 * 1024
Row = tuple[int, int, str | None, str | None]


def restore(*arguments: str | Path) -> Result:
    return CliRunner().invoke(kafkalog, ["restore", *map(str, arguments)])


@pytest.fixture
def disk(unpacked: Unpacked) -> Path:
    return unpacked("tiered43.logs") / "log-dirs"


@pytest.fixture
def store(unpacked: Unpacked, tmp_path: Path) -> Path:
    """A copy of the store: restore has no business to change it."""
    return Path(
        shutil.copytree(unpacked("tiered43.tiered") / "kafka-tiered-storage", tmp_path / "store")
    )


def received(unpacked: Unpacked, topic: str) -> list[Row]:
    """What a consumer of the old cluster got."""
    path = unpacked("tiered43.golden") / "consumer" / f"{topic}.read_uncommitted.jsonl"
    rows = map(json.loads, path.read_text().splitlines())
    return sorted((row["partition"], row["offset"], row["key"], row["value"]) for row in rows)


def restored(directory: Path, topic: str) -> list[Row]:
    return sorted(_records(directory, topic))


def _records(directory: Path, topic: str) -> Iterator[Row]:
    """The records of applications."""
    for log in find_partitions([str(directory / "data")]):
        if log.topic != topic:
            continue
        reader = LogReader(log)
        for chunk in reader.chunks(reader.start_offset, CHUNK):
            for batch in chunk.batches():
                for record in () if read_header(batch, 0).is_control else read_batch(batch, 0):
                    yield log.partition or 0, record.offset, _text(record.key), _text(record.value)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def hashes(directory: Path) -> dict[Path, str]:
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_tier_and_disk_make_whole_logs(
    unpacked: Unpacked, disk: Path, store: Path, tmp_path: Path
) -> None:
    """F1202."""
    before = hashes(store)
    target = tmp_path / "restored"
    result = restore(store, disk, "--to", target)
    assert result.exit_code == ExitCode.DONE, result.output
    for topic in TOPICS:
        assert restored(target, topic) == received(unpacked, topic)
    assert hashes(store) == before
    assert CliRunner().invoke(kafkalog, ["check", str(target / "data")]).exit_code == ExitCode.DONE


def test_the_index_of_aborted_transactions_comes_with_the_object(
    disk: Path, store: Path, tmp_path: Path
) -> None:
    target = tmp_path / "restored"
    restore(store, disk, "--to", target)
    (folder,) = store.glob("tier.tiered.tx-0-*")
    stored = {
        int(path.name[:20]): path.read_bytes()
        for path in folder.glob("*.txnindex")
        if path.stat().st_size
    }
    assert stored
    for base, data in stored.items():
        assert (target / "data/tier.tiered.tx-0" / f"{base:020d}.txnindex").read_bytes() == data


def test_the_tier_alone_needs_the_metadata(store: Path, tmp_path: Path) -> None:
    result = restore(store, "--to", tmp_path / "restored")
    assert result.exit_code == ExitCode.UNREADABLE_INPUT
    assert "also give metadata.log.dir of a controller" in result.output


def test_the_tier_with_the_metadata_has_what_was_copied_there(
    unpacked: Unpacked, disk: Path, store: Path, tmp_path: Path
) -> None:
    """F1203."""
    controller, target = tmp_path / "controller", tmp_path / "restored"
    shutil.copytree(disk / "__cluster_metadata-0", controller / "__cluster_metadata-0")
    shutil.copy(disk / "meta.properties", controller)
    result = restore(store, controller, "--to", target)
    assert result.exit_code == ExitCode.FINDINGS, result.output
    manifest: dict[str, Any] = json.loads((target / "manifest.json").read_text())
    rows = [row for row in manifest["partitions"] if row["topic"] in TOPICS]
    assert len(rows) == 3
    for row in rows:
        assert f"{row['topic']}-{row['partition']}: no copy goes up to the moment" in result.output
        found = [each for each in received(unpacked, row["topic"]) if each[0] == row["partition"]]
        expected = [each for each in found if each[1] < row["cut_offset"]]
        mine = [each for each in restored(target, row["topic"]) if each[0] == row["partition"]]
        assert mine == expected
        assert mine
    assert "tier.local is left out" in result.output


def test_a_missing_object_is_named(disk: Path, store: Path, tmp_path: Path) -> None:
    """F1202."""
    folder = next(store.glob("tier.tiered.tx-0-*"))
    objects = sorted(folder.glob("*.log"))
    first, until = (int(path.name[:20]) for path in objects[1:3])
    objects[1].unlink()
    result = restore(store, disk, "--to", tmp_path / "restored")
    assert result.exit_code == ExitCode.FINDINGS
    line = f"tier.tiered.tx-0: offsets {first} to {until - 1} are neither in tiered storage nor on"
    assert line in result.output


def test_the_new_cluster_does_not_use_the_store(disk: Path, store: Path, tmp_path: Path) -> None:
    """F1058: its retention would delete the objects of the old one."""
    target = tmp_path / "restored"
    restore(store, disk, "--to", target)
    assert "remote" not in (target / "server.properties").read_text()
    manifest: dict[str, Any] = json.loads((target / "manifest.json").read_text())
    undo = [row["undo"] for row in manifest["configs"] if row["config"].startswith("remote.")]
    assert undo
    assert all("never with the old cluster's store" in command for command in undo)
    logs = [*(target / "data").glob("__remote_log_metadata-*/*.log")]
    assert logs
    assert sum(path.stat().st_size for path in logs) == 0


def test_encrypted_objects_are_refused_before_anything_is_written(
    disk: Path, store: Path, tmp_path: Path
) -> None:
    """F1278: in the layout of Aiven's plug-in, which alone encrypts."""
    folder = next(store.glob("tier.tiered-0-*"))
    segment = min(folder.glob("*.log")).read_bytes()
    path = store_segment(tmp_path / "other", "tier.tiered-0", 0, segment)
    beside = path.with_suffix(".rsm-manifest")
    encryption = {"encryption": {"dataKey": "key:x", "aad": "y"}}
    beside.write_text(json.dumps(json.loads(beside.read_text()) | encryption))
    topic_id = folder.name.removeprefix("tier.tiered-0-")
    path.parents[1].rename(path.parents[1].with_name(f"tier.tiered-{topic_id}"))
    for arguments in (["--check"], ["--to", tmp_path / "restored"]):
        result = restore(tmp_path / "other", disk, *arguments)
        assert result.exit_code == ExitCode.UNREADABLE_INPUT
        assert f"{path.name} is encrypted" in result.output
    assert not (tmp_path / "restored").exists()
