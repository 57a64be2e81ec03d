"""A real broker on what `kafkalog restore` makes of disks that are not what they should be: F1034,
F1037, F1041, F1044 and F1064 of docs/restore.md; and with other releases: F1062."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from tests.support.broker.cluster.restored_cluster import (
    MARGIN_MS,
    consumed,
    ledger,
    produced,
    restore,
)
from tests.support.broker.cluster.restored_node import RestoredNode
from tests.support.golden.restored_copies import AS_OF_MS

pytestmark = pytest.mark.deep

Unpacked = Callable[[str], Path]


@pytest.fixture
def disks(unpacked: Unpacked, tmp_path: Path) -> list[Path]:
    """The three copies, to be changed."""
    copies = []
    for path in sorted((unpacked("restore44.logs") / "snapshots").glob("*/data")):
        copies.append(tmp_path / path.parent.name / "data")
        shutil.copytree(path, copies[-1])
    return copies


def check_records(node: RestoredNode, golden: Path, *topics: str) -> None:
    """All that was acknowledged before the moment is there."""
    records = consumed(node, "read_uncommitted", *topics)
    for topic in topics:
        for row in ledger(golden, topic):
            if row["ack"] * 1000 < AS_OF_MS - MARGIN_MS:
                place = topic, row["partition"], row["offset"]
                assert records[place].decode() == row["value"], place


def test_disks_with_all_kinds_of_damage_become_a_sound_node(
    disks: list[Path], unpacked: Unpacked, tmp_path: Path
) -> None:
    """F1034, F1041, F1044 and F1064: a partition is twice on one broker, time indexes are padded,
    checkpoints of leader epochs are empty, a tail is torn, and a page cannot be trusted."""
    second = tmp_path / "node1" / "second"
    second.mkdir()
    text = (disks[0] / "meta.properties").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("directory.id")]
    (second / "meta.properties").write_text(
        "\n".join([*lines, "directory.id=bm90LXRoZS1maXJzdA", ""])
    )
    shutil.copytree(disks[0] / "events-0", second / "events-0")
    for disk in disks:
        for index in disk.glob("events-*/*.timeindex"):
            index.write_bytes(index.read_bytes() + bytes(1200))
        for checkpoint in disk.glob("derived-*/leader-epoch-checkpoint"):
            checkpoint.write_text("")
    torn = max(disks[2].glob("plain-0/*.log"))
    torn.write_bytes(torn.read_bytes()[:-7])
    page = disks[2] / "events-1" / f"{0:020}.log"
    data = bytearray(page.read_bytes())
    data[1000:1100] = bytes(100)
    page.write_bytes(data)
    manifest = restore([str(path) for path in (*disks, second)], tmp_path / "restored")
    # What is damaged in one copy is sound in others.
    assert [row for row in manifest["partitions"] if row["lost"]] == []
    with RestoredNode(tmp_path / "restored", tmp_path / "node") as node:
        check_records(node, unpacked("restore44.golden"), "events", "derived", "transfers")
        assert produced(node, "new", "events", "plain", "derived")
        assert node.warnings == []
        assert not list(node.data.glob("*-stray"))


def test_one_disk_of_three_is_enough(disks: list[Path], unpacked: Unpacked, tmp_path: Path) -> None:
    """F1041: the one that was copied last."""
    restore([str(disks[2])], tmp_path / "restored")
    with RestoredNode(tmp_path / "restored", tmp_path / "node") as node:
        check_records(node, unpacked("restore44.golden"), "events", "derived", "transfers")
        assert node.warnings == []


def test_metadata_that_is_older_than_the_data_lacks_topics(
    disks: list[Path], unpacked: Unpacked, tmp_path: Path
) -> None:
    """F1037: the metadata is of the first copy, the data of the last, eighteen seconds later."""
    for disk in disks[1:]:
        shutil.rmtree(disk / "__cluster_metadata-0")
    paths = [str(path) for path in disks]
    late = CliRunner().invoke(
        kafkalog, ["restore", *paths, "--as-of", "2026-11-25T19:48:50Z", "--check"]
    )
    assert late.exit_code == ExitCode.UNREADABLE_INPUT
    assert "no disk covers that moment" in late.output
    manifest = restore(paths, tmp_path / "restored")
    reasons = {row["topic"]: row["reason"] for row in manifest["left_out"]}
    assert reasons["new-late"] == "not in the metadata that was given"
    with RestoredNode(tmp_path / "restored", tmp_path / "node") as node:
        check_records(node, unpacked("restore44.golden"), "events", "derived", "transfers")
        assert node.warnings == []
        assert not list(node.data.glob("*-stray"))
