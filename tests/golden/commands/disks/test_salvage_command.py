"""`kafkalog salvage`: a new log directory without Spark, whole or not there."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from kafkalog.schemas import table_fields
from tests.support.repository import EXAMPLES, Unpack

DAMAGED = EXAMPLES / "damaged"
# By hand, from the descriptions in recovery.json: a page of zeros over the batch at 7979 and the
# rest of that batch, and one flipped bit in the batch at 23728.
MARKED = [("shop.compact-keep-0", "stray"), ("shop.tx-0", "delete")]
DAMAGED_RANGES = [("checksum", 23728, 1558), ("zeros", 7979, 4096), ("garbage", 12075, 3879)]


def run(command: str, *arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, [command, *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: object) -> list[dict[str, Any]]:
    _, out, _ = run("salvage", *arguments, "--format", "json")
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_damaged_log_dir_becomes_a_sound_one(processes: int, tmp_path: Path) -> None:
    # F180 to F184.
    target = tmp_path / "new"
    code, out, err = run("salvage", DAMAGED, "--to", target, "--processes", processes)
    *_, verdict = out.splitlines()
    assert (code, "LOST: 9,533 bytes in 3 ranges" in verdict) == (1, True)
    assert err.startswith("missing: 1 partition that the checkpoints of")
    code, out, _ = run("check", target)
    assert (code, "2,730 records" in out) == (0, True)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_the_rows_are_those_of_the_jobs_tables(tmp_path: Path) -> None:
    lost = rows(DAMAGED, "--to", tmp_path / "one")
    assert [(row["kind"], row["position"], row["length"]) for row in lost] == DAMAGED_RANGES
    assert [*lost[0]] == [field["name"] for field in table_fields("lost_ranges")]
    (salvaged,) = rows(DAMAGED, "--to", tmp_path / "two", "--by", "partition")
    assert [*salvaged] == [field["name"] for field in table_fields("salvage")]
    assert salvaged["directory"] == str(tmp_path / "two" / "e.w-0")
    assert [row["kind"] for row in salvaged["lost_ranges"]] == ["checksum", "zeros", "garbage"]


def test_only_the_topics_that_are_named_are_salvaged(tmp_path: Path) -> None:
    target = tmp_path / "new"
    code, _, _ = run("salvage", EXAMPLES / "kafka-4.4", "--to", target, "--topic", "shop.tx")
    assert code == 0
    assert [path.name for path in target.iterdir() if path.is_dir()] == ["shop.tx-0"]
    ends = read_offset_checkpoint((target / "recovery-point-offset-checkpoint").read_text())
    assert [*ends] == [("shop.tx", 0)]


def test_topics_are_compacted_as_by_the_job(tmp_path: Path) -> None:
    # F252 to F254.
    given = (EXAMPLES / "kafka-4.4", "--to", tmp_path / "new", "--compact-topic")
    code, _, err = run("salvage", *given, "shop.tx", "--compact-topic", "nowhere")
    assert (code, "--compact-topic: 'nowhere'" in err) == (2, True)
    code, out, _ = run("salvage", *given, "shop.tx")
    assert (code, "less after compaction of shop.tx; nothing was lost" in out) == (0, True)


def test_nothing_is_written_into_what_is_read(tmp_path: Path) -> None:
    source = tmp_path / "logs"
    shutil.copytree(DAMAGED / "e.w-0", source / "e.w-0")
    code, _, err = run("salvage", source, "--to", source / "new")
    assert (code, "a directory outside of" in err) == (2, True)
    assert [path.name for path in source.iterdir()] == ["e.w-0"]


def test_nothing_is_written_where_something_is(tmp_path: Path) -> None:
    # F180.
    code, _, err = run("salvage", DAMAGED, "--to", tmp_path)
    assert (code, "new directories only" in err) == (3, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_full_disk_is_named_and_leaves_nothing(processes: str, tmp_path: Path) -> None:
    # Two partitions, and no room for a file of more than 20 KiB.
    source, target = tmp_path / "logs", tmp_path / "new"
    for name in ("e.w-0", "e.w-1"):
        shutil.copytree(DAMAGED / "e.w-0", source / name)
    command = f'ulimit -f 20; "{sys.executable}" -m kafkalog salvage {source} --to {target}'
    ran = subprocess.run(
        ["bash", "-c", f"{command} --processes {processes}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ},
    )
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "File too large" in ran.stderr
    assert f"{tmp_path}/.new." in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


@pytest.mark.parametrize(
    ("variant", "offsets"), [("middle-segment-missing", 453), ("empty-active-log", 137)]
)
def test_the_verdict_counts_offsets_that_left_no_byte(
    variant: str, offsets: int, unpacked: Unpack, tmp_path: Path
) -> None:
    # By hand: segment 463 to 915 was deleted; 2663 to 2799 were in the log that is empty.
    damaged = unpacked("unclean.logs") / "variants" / variant / "log-dirs"
    _, out, _ = run("salvage", damaged, "--to", tmp_path / "new")
    said = f"LOST: 0 bytes in 1 range, and {offsets} offsets of which no byte is there\n"
    assert out.endswith(said)


def test_doubtful_batches_are_kept_on_request(unpacked: Unpack, tmp_path: Path) -> None:
    # F196: by hand, from recovery.json, an offset of 2721 that was changed to 1002721.
    jumped = unpacked("unclean.logs") / "variants" / "base-offset-jump" / "log-dirs"
    code, out, _ = run("salvage", jumped, "--to", tmp_path / "without")
    assert (code, "LOST: 7,975 bytes in 1 range" in out) == (1, True)
    given = (jumped, "--to", tmp_path / "with", "--keep-doubtful")
    assert run("salvage", *given, "--compact-topic", "e.w")[0] == 2
    code, out, _ = run("salvage", *given)
    assert (code, out.endswith("; nothing was lost; 1 doubtful batch kept\n")) == (1, True)
    code, out, _ = run("check", tmp_path / "with")
    assert (code, "2,800 records" in out) == (0, True)


@pytest.mark.usefixtures("ended_by_hang_up")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_salvage_that_is_stopped_leaves_nothing(
    number: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        assert len(list(tmp_path.iterdir())) == 1
        os.kill(os.getpid(), number)

    monkeypatch.setattr("kafkalog.inspection.partitions.salvaged_logs.salvage_partition", stopped)
    found, out, _ = run("salvage", DAMAGED, "--to", tmp_path / "new", "--processes", 1)
    assert (found, out) == (code, "")
    assert list(tmp_path.iterdir()) == []


def test_directories_that_are_left_out_are_named(tmp_path: Path) -> None:
    # F184: a controller's log, and what a broker has deleted or set aside.
    logs = shutil.copytree(EXAMPLES / "kafka-4.4", tmp_path / "my logs")
    shutil.copytree(logs / "shop.codec-zstd-0", logs / "__cluster_metadata-0")
    marked = [f"{name}.9f8e7d6c5b4a39281706f5e4d3c2b1a0-{mark}" for name, mark in MARKED]
    for (name, _), new_name in zip(MARKED, marked, strict=True):
        (logs / name).rename(logs / new_name)
    _, _, err = run("salvage", logs, "--to", tmp_path / "new")
    left_out = [line for line in err.splitlines() if line.startswith("left out: ")]
    paths = [line.split(": ")[1] for line in left_out]
    assert paths == [str(logs / name) for name in ("__cluster_metadata-0", *marked)]
    assert f"kafkalog undelete '{logs}' --topic shop.tx --to NEW" in left_out[-1]
    assert {path.name for path in (tmp_path / "new").iterdir()}.isdisjoint(marked)
