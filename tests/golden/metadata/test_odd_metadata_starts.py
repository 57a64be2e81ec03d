"""What `kafkalog recover` says of metadata with odd names and offsets, and of nodes without a
leader of the controllers, against what real nodes did.

Rules: docs/format.md F1397, F1398 and F1406 to F1408.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from tests.support.broker.node_starts.quorum_damages import QUORUM_DAMAGES
from tests.support.broker.node_starts.startup_damages import changed
from tests.support.golden.startup_cases import STARTED_AT, startup_cases
from tests.support.repository import Unpack

_TOPIC = "__cluster_metadata"
_METADATA = f"d1/{_TOPIC}-0"
_OF_3_9 = "13-3.9.2-on-4.4.0"
_NOW_MS = 1_795_632_060_000


def made(unpacked: Unpack, folder: Path, name: str = "00-control") -> Path:
    return startup_cases(unpacked)[name].made_in(folder / "node")


def run(folder: Path, version: str, *more: str) -> tuple[int, str]:
    given = ["recover", folder / "d1", folder / "d2", "--as-of", STARTED_AT, "--kafka", version]
    given += ["--server-properties", folder / "server.properties", "--processes", "1", *more]
    result = CliRunner().invoke(kafkalog, list(map(str, given)))
    return result.exit_code, result.stdout


def rows(folder: Path, version: str, by: str) -> list[dict[str, Any]]:
    said = run(folder, version, "--by", by, "--format", "json", "--all")[1]
    return [json.loads(line) for line in said.splitlines()]


@pytest.mark.parametrize(
    ("version", "name", "starts"),
    [
        ("3.9.2", "00000000000000000050-0000000001-1", False),
        ("4.2.1", "00000000000000000050-0000000001-1", False),
        ("4.3.1", "00000000000000000050-0000000001-1", True),
        ("4.4.0", "00000000000000000050-0000000001-1", True),
        ("3.9.2", "+0000000000000000050-0000000001", False),
        ("4.4.0", "+0000000000000000050-0000000001", True),
        ("3.9.2", "00000000000000000000-0000000000-1", False),
        ("4.4.0", "00000000000000000000-0000000000-1", True),
        ("3.9.2", "-0000000000000000050-0000000001", True),
        ("4.4.0", "00000000000000099999-0000000009-1", False),
    ],
)
def test_a_snapshot_with_another_form_of_its_name(
    version: str, name: str, starts: bool, unpacked: Unpack, tmp_path: Path
) -> None:
    # F1406.
    folder = made(unpacked, tmp_path, "00-control" if version == "4.4.0" else _OF_3_9)
    (folder / _METADATA / f"{name}.checkpoint").write_text("x")
    (node,) = rows(folder, version, "node")
    named = [reason for reason in node["reasons"] if f"{name}.checkpoint" in reason["reason"]]
    assert bool(named) != starts
    for reason in named:
        assert reason["what_to_do"].startswith(f"mv {folder / _METADATA / name}.checkpoint ")
    (log,) = (row for row in rows(folder, version, "partition") if row["topic"] == _TOPIC)
    # The broker of 4.4.0 had deleted the log before it ended.
    assert (log["lost_records"] > 0) == name.startswith("00000000000000099999")


def test_a_coordinator_reads_a_record_whose_offset_is_too_far(
    unpacked: Unpack, tmp_path: Path
) -> None:
    # F1408: coordinators of 3.9.2, 4.1.0, 4.3.1 and 4.4.0 did not load at a record without a key.
    folder = made(unpacked, tmp_path)
    far = 2**31 + 5
    with max((folder / "d2/__consumer_offsets-0").glob("*.log")).open("ab") as log:
        base = int(Path(log.name).stem)
        record = Record(base + far, _NOW_MS, 0, None, b"v")
        log.write(write_batch([record], BatchFields(leader_epoch=2)))
    (folder / "d2/.kafka_cleanshutdown").unlink()
    for version in ("4.1.0", "4.4.0"):
        (row,) = (each for each in rows(folder, version, "partition") if each["coordinator_error"])
        assert row["topic"] == "__consumer_offsets"
        assert row["coordinator_error"]["offset"] == base + far


@pytest.mark.parametrize("roles", ["broker,controller", "controller"])
def test_a_controller_without_a_leader_ends_only_with_a_broker(
    roles: str, unpacked: Unpack, tmp_path: Path
) -> None:
    # F1397 and F1398: nodes of 4.4.0 that were a broker too ended after a minute.
    folder = made(unpacked, tmp_path)
    QUORUM_DAMAGES["properties-bootstrap-without-voters"].make(folder)
    changed("server.properties", "=broker,controller", f"={roles}")(folder)
    (node,) = rows(folder, "4.4.0", "node")
    ends = roles != "controller"
    assert (node["broker_starts"], node["process_ends"]) == (False, ends)
    code, text = run(folder, "4.4.0")
    assert code == 1
    words = "does NOT start with" if ends else "stays up, and SERVES NOTHING, with"
    assert text.startswith(f"Node 1 {words} Kafka 4.4.0, for ")
    waits = "cannot register, and ends after initial.broker.registration.timeout.ms, 60000 ms"
    assert (waits in text) == ends


def test_a_voter_of_another_directory_has_a_line(unpacked: Unpack, tmp_path: Path) -> None:
    # F1407: with the line typed, a node of 4.4.0 starts.
    folder = made(unpacked, tmp_path)
    QUORUM_DAMAGES["voter-of-another-directory"].make(folder)
    (node,) = rows(folder, "4.4.0", "node")
    (reason,) = node["reasons"]
    assert reason["file"] == f"{folder}/d1/meta.properties"
    assert reason["what_to_do"].startswith("sed -i 's/^directory\\.id=.*/directory.id=AAAAAAAAAA")
