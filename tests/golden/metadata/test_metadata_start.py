"""What `kafkalog check`, `recover`, `quorum` and `metadata` say of copies of a real controller's
metadata that were damaged by hand. A broker of 4.4.0 was started on each of them. Rules: F920 to
F922."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.repository import Unpack

DIRECTORY = "__cluster_metadata-0"
OLDER, NEWEST = (
    f"{DIRECTORY}/{offset:020d}-{epoch:010d}.checkpoint" for offset, epoch in ((595, 2), (635, 2))
)
FIRST = f"{DIRECTORY}/{0:020d}-{0:010d}.checkpoint"
STATE = f"{DIRECTORY}/quorum-state"


@pytest.fixture
def copy(unpacked: Unpack, tmp_path: Path) -> Path:
    """Return a copy of a real controller's directory, which was not stopped cleanly."""
    (source,) = unpacked("kafka44.logs").rglob(DIRECTORY)
    shutil.copytree(source, tmp_path / "copy" / DIRECTORY)
    shutil.copy(source.parent / "meta.properties", tmp_path / "copy")
    return tmp_path / "copy"


def run(command: str, *arguments: object) -> tuple[int, str, str]:
    given = [command, *map(str, arguments)]
    result = CliRunner().invoke(kafkalog, given)
    return result.exit_code, result.stdout, result.stderr


def rows(command: str, *arguments: object) -> tuple[int, list[dict[str, Any]]]:
    code, out, _ = run(command, *arguments, "--format", "json")
    return code, [json.loads(line) for line in out.splitlines()]


def metadata_rows(copy: Path, *arguments: object) -> tuple[int, list[dict[str, Any]]]:
    """What `recover` says of the metadata's log; the other partitions of the node are not in the
    copy."""
    return rows("recover", copy, "--topic", "__cluster_metadata", *arguments)


def inverted(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 255
    path.write_bytes(data)


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def test_a_sound_copy_has_no_finding_and_starts(copy: Path) -> None:
    assert run("check", copy, "--topic", "__cluster_metadata")[0] == 0
    code, (row,) = metadata_rows(copy)
    assert (code, row["broker_starts"], row["log_end_offset"]) == (0, True, 707)
    # The broker recovers this log however it was stopped.
    (copy / ".kafka_cleanshutdown").touch()
    _, (row,) = metadata_rows(copy, "--shutdown", "clean")
    assert (row["shutdown"], row["recovered_segments"]) == ("unclean", 4)


# What a broker of 4.4.0 did with each: only with a snapshot that lacks nothing but its footer, the
# last 77 bytes, did it start all the same.
FATAL: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "byte": (NEWEST, "checksum", lambda path: inverted(path, 3000)),
    "footer's byte": (NEWEST, "checksum", lambda path: inverted(path, path.stat().st_size - 7)),
    "half": (NEWEST, "truncated", lambda path: cut(path, 5000)),
    "header only": (NEWEST, "truncated", lambda path: cut(path, 83)),
    "empty": (NEWEST, "truncated", lambda path: cut(path, 0)),
    "short name": (
        f"{DIRECTORY}/635-2.checkpoint",
        "file_name",
        lambda path: (path.parents[1] / OLDER).rename(path),
    ),
    "letters": (
        f"{DIRECTORY}/0000000000000000abcd-0000000002.checkpoint",
        "file_name",
        lambda path: (path.parents[1] / OLDER).rename(path),
    ),
    "bootstrap cut": (
        "bootstrap.checkpoint",
        "truncated",
        lambda path: path.write_bytes((path.parent / FIRST).read_bytes()[:150]),
    ),
    "bootstrap garbage": (
        "bootstrap.checkpoint",
        "truncated",
        lambda path: path.write_bytes(b"garbage" * 30),
    ),
}


@pytest.mark.parametrize("name", FATAL)
def test_damage_with_which_a_broker_ends_is_an_error(copy: Path, name: str) -> None:
    file, kind, change = FATAL[name]
    change(copy / file)
    code, (found,) = rows("check", copy)
    assert code == 1
    assert (found["file"], found["severity"]) == (str(copy / file), "error")
    assert found["kind"] == kind
    code, out, _ = run("check", copy)
    assert "DAMAGED: 1 fault in 0 segments and 1 metadata snapshot, " in out
    assert "checked 4 segments of 1 partition, " in out
    code, (row,) = metadata_rows(copy)
    assert (code, row["broker_starts"]) == (1, False)
    assert row["start_error"].startswith(f"{Path(file).name}: position ")
    assert "Node 1 does NOT start with Kafka 4.4" in run("recover", copy)[1]


def test_a_damaged_newest_snapshot_can_be_moved_away(copy: Path) -> None:
    # So a broker of 4.4.0 started, from the snapshot before.
    inverted(copy / NEWEST, 3000)
    advice = "move it away, and a broker starts from the snapshot before and the log"
    assert advice in run("check", copy)[1]
    for path in (copy / DIRECTORY).glob("*.checkpoint"):
        if path != copy / NEWEST:
            path.unlink()
    assert advice not in run("check", copy)[1]


@pytest.mark.parametrize("file", [OLDER, FIRST])
def test_an_older_snapshot_is_not_read_and_a_warning(copy: Path, file: str) -> None:
    inverted(copy / file, 300)
    code, (found,) = rows("check", copy)
    assert (code, found["file"], found["severity"]) == (1, str(copy / file), "warning")
    code, (row,) = metadata_rows(copy)
    assert (code, row["broker_starts"]) == (0, True)


@pytest.mark.parametrize("text", ["garbage", "", '{"data_version":0}', '{"data_version":7}'])
def test_a_damaged_state_of_the_quorum_keeps_a_broker_from_starting(copy: Path, text: str) -> None:
    (copy / STATE).write_text(text)
    code, (found,) = rows("check", copy)
    assert (code, found["file"], found["severity"]) == (1, str(copy / STATE), "error")
    code, (row,) = metadata_rows(copy)
    assert (code, row["broker_starts"]) == (1, False)
    assert row["start_error"].startswith("quorum-state: ")


def test_a_broker_starts_without_the_state_of_the_quorum(copy: Path) -> None:
    (copy / STATE).unlink()
    assert run("check", copy)[0] == 0
    assert metadata_rows(copy)[1][0]["broker_starts"]


def test_a_later_snapshot_replaces_the_log(copy: Path) -> None:
    # A broker of 4.4.0 removed the four segments and went on at 635.
    (copy / NEWEST).rename(copy / NEWEST.replace("-0000000002", "-0000000003"))
    _, (row,) = metadata_rows(copy)
    assert (row["log_start_offset"], row["log_end_offset"]) == (635, 635)
    assert row["deleted_segments"] == [0, 218, 458, 660]
    # Of the second segment and before, the snapshot has everything.
    assert row["lost_records"] == 249


def test_no_broker_starts_where_the_beginning_is_in_no_snapshot(copy: Path) -> None:
    for path in (copy / DIRECTORY).glob("*.checkpoint"):
        path.unlink()
    for base_offset in (0, 218, 458):
        (copy / DIRECTORY / f"{base_offset:020d}.log").unlink()
    _, (row,) = metadata_rows(copy)
    assert not row["broker_starts"]
    assert "no snapshot has the state up to there" in row["start_error"]


def remove(copy: Path, *endings: str) -> None:
    for ending in endings:
        for path in (copy / DIRECTORY).glob(f"*{ending}"):
            path.unlink()


# Which logs are removed; where a broker of 4.4.0 then goes on, and the end that files name.
LOST = {
    "all": ((0, 218, 458, 660), 635, 707, "error"),
    "the last": ((660,), 660, 707, "warning"),
    "the last two": ((458, 660), 635, 707, "warning"),
}


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("name", LOST)
def test_a_log_that_is_gone_is_missed_by_indexes_and_snapshots(
    copy: Path, name: str, is_clean: bool
) -> None:
    gone, end, known, severity = LOST[name]
    for base_offset in gone:
        (copy / DIRECTORY / f"{base_offset:020d}.log").unlink()
    if is_clean:
        (copy / ".kafka_cleanshutdown").touch()
    _, (row,) = metadata_rows(copy)
    assert (row["log_end_offset"], row["missing_offsets"]) == (end, known - end)
    words = f"offsets {end} to {known - 1} are missing"
    code, found = rows("check", copy, "--no-indexes")
    assert code == 1
    assert [(each["kind"], each["severity"]) for each in found] == [("missing_end", severity)]
    assert found[0]["detail"].startswith(words)
    for command in ("quorum", "metadata"):
        code, _, err = run(command, copy, "--format", "json")
        assert (code, words in err) == (3, True)
    # Up to there everything is known.
    assert run("metadata", copy, "--as-of-offset", end, "--format", "json")[0] == 0


def test_the_names_of_producer_snapshots_alone_show_a_lost_end(copy: Path) -> None:
    for path in (copy / DIRECTORY).glob(f"{660:020d}.*"):
        path.unlink()
    _, (row,) = metadata_rows(copy)
    assert (row["log_end_offset"], row["missing_offsets"]) == (660, 47)


def test_a_lost_log_without_any_snapshot_of_the_metadata_begins_with_nothing(copy: Path) -> None:
    # A broker of 4.4.0 wrote the records of a new cluster from offset 0 on.
    remove(copy, ".log", ".checkpoint", f"{707:020d}.snapshot", f"{660:020d}.*")
    for path in (copy / DIRECTORY).glob(f"*{660:020d}*"):
        path.unlink()
    _, (row,) = metadata_rows(copy)
    assert row["log_end_offset"] == 0 and row["missing_offsets"] > 458
    assert run("check", copy, "--no-indexes")[0] == 1
    for command in ("quorum", "metadata"):
        assert run(command, copy)[0] == 3
