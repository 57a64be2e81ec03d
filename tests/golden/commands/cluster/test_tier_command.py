"""`kafkalog tier` on what a broker 4.3.1 copied, and on damage. Rules: F547 to F549, F559."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.inspection.partitions.tier_check import ERRORS

Unpacked = Callable[[str], Path]
STORE = "kafka-tiered-storage"


@pytest.fixture
def place(unpacked: Unpacked, tmp_path: Path) -> Path:
    """A copy of the log directory and of the tier, to be changed."""
    shutil.copytree(unpacked("tiered43.logs") / "log-dirs", tmp_path / "log-dirs")
    shutil.copytree(unpacked("tiered43.tiered") / STORE, tmp_path / "tier" / STORE)
    return tmp_path


def run(place: Path, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    given = ["tier", str(place / "log-dirs"), str(place / "tier"), "--format", "json", *arguments]
    result = CliRunner().invoke(kafkalog, given)
    return (
        result.exit_code,
        [json.loads(line) for line in result.stdout.splitlines()],
        (result.stderr),
    )


def log_of(place: Path, partition: str, base_offset: int) -> Path:
    (found,) = (place / "tier" / STORE).glob(f"{partition}-*/{base_offset:020}-*.log")
    return found


def test_the_tier_ends_where_the_broker_said(place: Path, unpacked: Unpacked) -> None:
    code, rows, err = run(place, "--by", "segment")
    assert (code, [row for row in rows if row["finding"]]) == (0, [])
    assert err.endswith("safe there, 0 B; sound\n")
    told = (unpacked("tiered43.golden") / "tools" / "get_offsets_time-5.txt").read_text().split()
    latest = {name: int(offset) for name, offset in (line.rsplit(":", 1) for line in told)}
    ends: dict[str, int] = {}
    for row in rows:
        if row["state"] == "copied":
            name = f"{row['topic']}:{row['partition']}"
            ends[name] = max(ends.get(name, -1), row["end_offset"])
    assert ends == latest
    stored = {path.name for path in (place / "tier" / STORE).rglob("*.log")}
    assert stored == {
        f"{row['start_offset']:020}-{row['segment_id']}.log"
        for row in rows
        if row["state"] == "copied"
    }
    # The broker has deleted all that it copied, so no local segment but the last is left.
    local = [row["state"] for row in rows if row["segment_id"] is None]
    assert local == ["active"] * 3


def test_what_is_missing_or_left_over_in_the_tier_is_found(place: Path) -> None:
    log_of(place, "tier.tiered-0", 20).unlink()
    short = log_of(place, "tier.tiered-1", 0)
    short.write_bytes(short.read_bytes()[:-1])
    stray = log_of(place, "tier.tiered.tx-0", 12)
    stray.with_name(f"{700:020}-{'A' * 22}.log").write_bytes(b"left")
    code, rows, err = run(place)
    assert code == 1
    assert [
        (row["topic"], row["partition"], row["start_offset"], row["end_offset"], row["finding"])
        for row in rows
    ] == [
        ("tier.tiered", 0, 20, 133, "missing_object"),
        ("tier.tiered", 0, 20, 133, "hole"),
        ("tier.tiered", 1, 0, 386, "size_differs"),
        ("tier.tiered.tx", 0, 700, None, "orphan"),
    ]
    assert "3 findings of lost records; 1 finding of what is left over" in err


def test_without_the_folder_nothing_is_said_of_objects(place: Path) -> None:
    result = CliRunner().invoke(kafkalog, ["tier", str(place / "log-dirs")])
    assert result.exit_code == 0
    assert "its objects are not known" in result.stderr
    result = CliRunner().invoke(kafkalog, ["tier", str(place / "tier")])
    assert result.exit_code == 3
    assert "there is no __remote_log_metadata, which says what was copied" in result.stderr


def test_a_local_segment_is_safe_if_the_same_leaders_copied_it(place: Path) -> None:
    # F549: as before the broker deleted its own copy.
    copied = log_of(place, "tier.tiered-0", 134)
    local = place / "log-dirs" / "tier.tiered-0"
    shutil.copyfile(copied, local / f"{134:020}.log")

    def state() -> str:
        _, rows, _ = run(place, "--by", "segment", "--topic", "tier.tiered")
        (found,) = (
            row["state"]
            for row in rows
            if row["segment_id"] is None and (row["partition"], row["start_offset"]) == (0, 134)
        )
        return str(found)

    assert state() == "in tier"
    checkpoint = local / "leader-epoch-checkpoint"
    text = checkpoint.read_text()
    checkpoint.write_text("0\n1\n9 0\n")
    assert state() == "on disk only"
    checkpoint.write_text(text)
    copied.unlink()
    assert state() == "on disk only"


def test_a_topic_or_partition_that_is_not_there_is_refused(place: Path) -> None:
    code, _, err = run(place, "--topic", "tier.tierd")
    assert (code, "--topic: 'tier.tierd' is not valid" in err, "tier.tiered" in err) == (
        2,
        True,
        True,
    )
    code, _, err = run(place, "--partition", "7")
    assert (code, "--partition: '7' is not valid" in err) == (2, True)


METADATA = "__remote_log_metadata"


def not_known(place: Path) -> list[str]:
    """The run calls nothing left over, ends with 3, and names what the topic lacks."""
    code, rows, err = run(place, "--by", "segment")
    assert code == ExitCode.UNREADABLE_INPUT
    assert [row for row in rows if row["finding"] not in (None, *ERRORS)] == []
    # All objects are there: what seems to be a hole is what the missing records name.
    assert [row for row in rows if row["finding"] == "hole"] == []
    assert "sound" not in err
    lines = [line for line in err.splitlines() if line.startswith(f"{METADATA} is not whole: ")]
    assert lines
    return [line.partition(": ")[2] for line in lines]


def without_cluster_metadata(place: Path) -> None:
    shutil.rmtree(place / "log-dirs" / "__cluster_metadata-0")
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (place / "log-dirs" / name).unlink()


def test_no_live_object_is_left_over_where_a_partition_of_the_metadata_is_missing(
    place: Path,
) -> None:
    # F953: all records of this tier are in partition 1; partition 0 is there, and empty.
    shutil.rmtree(place / "log-dirs" / f"{METADATA}-1")
    assert not_known(place) == [f"of its 2 partitions the input does not have {METADATA}-1"]
    without_cluster_metadata(place)
    (line,) = not_known(place)
    assert "does not say how many partitions it has" in line


def test_the_records_say_how_many_partitions_there_are_where_nothing_else_does(place: Path) -> None:
    # F953
    without_cluster_metadata(place)
    assert run(place)[0] == ExitCode.DONE
    shutil.rmtree(place / "log-dirs" / f"{METADATA}-0")
    assert not_known(place) == [f"of its 2 partitions the input does not have {METADATA}-0"]


@pytest.mark.parametrize("how", ["damaged", "cut", "end cut", "empty", "begins later"])
def test_no_live_object_is_left_over_where_the_metadata_is_not_whole(place: Path, how: str) -> None:
    # F953
    (log,) = (place / "log-dirs" / f"{METADATA}-1").glob("*.log")
    data = log.read_bytes()
    if how == "damaged":
        log.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    elif how == "cut":
        log.write_bytes(data[: len(data) // 2])
    elif how == "end cut":
        log.write_bytes(data[:-150])
    elif how == "empty":
        log.write_bytes(b"")
    else:
        starts = place / "log-dirs" / "log-start-offset-checkpoint"
        starts.write_text(f"0\n1\n{METADATA} 1 3\n")
    expected = {
        "damaged": "checksum",
        "cut": "missing_end",
        "end cut": "missing_end",
        "empty": "missing_end",
        "begins later": "begins at offset 3",
    }
    assert any(expected[how] in line for line in not_known(place))
