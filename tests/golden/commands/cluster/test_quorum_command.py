"""`kafkalog quorum` on copies made from a real controller's: cut, damaged, led by others."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.repository import ROOT

CONTROLLER = ROOT / "examples" / "controller"
LAST = f"__cluster_metadata-0/{660:020d}.log"
# By kafka-dump-log of the last segment: where its batches with offsets 705 and 706 begin. Of the
# second segment: the batch with which the leader of epoch 2 began.
POSITIONS = {705: 2463, 706: 2550}
ANNOUNCEMENT = (f"__cluster_metadata-0/{218:020d}.log", 10545, 91)


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    """Copies of three controllers that have the same."""
    found = []
    for node in (1, 2, 3):
        copy = tmp_path / f"node-{node}"
        shutil.copytree(CONTROLLER, copy)
        properties = copy / "meta.properties"
        properties.write_text(properties.read_text().replace("node.id=1", f"node.id={node}"))
        state = copy / "__cluster_metadata-0" / "quorum-state"
        voters = '[{"voterId":1},{"voterId":2},{"voterId":3}]'
        state.write_text(state.read_text().replace('[{"voterId":1}]', voters))
        found.append(copy)
    return found


def led_by_another(copy: Path, offset: int, epoch: int) -> None:
    """Cut a copy at an offset, where the leader of an epoch then begins."""
    name, position, size = ANNOUNCEMENT
    batch = bytearray((CONTROLLER / name).read_bytes()[position : position + size])
    # Neither is covered by the checksum.
    batch[0:8] = offset.to_bytes(8, "big")
    batch[12:16] = epoch.to_bytes(4, "big")
    log = copy / LAST
    log.write_bytes(log.read_bytes()[: POSITIONS[offset]] + batch)


def run(*paths: Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["quorum", *map(str, paths), "--format", "json"])
    return result.exit_code, result.stdout, result.stderr


def rows(*paths: Path) -> dict[int, dict[str, Any]]:
    found = [json.loads(line) for line in run(*paths)[1].splitlines()]
    return {row["node_id"]: row for row in found}


def test_copies_that_are_the_same_are_a_majority(nodes: list[Path]) -> None:
    # F768, F769
    found = rows(*nodes)
    assert {(row["end_offset"], row["behind"], row["diverges_at"]) for row in found.values()} == {
        (707, 0, None)
    }
    code, _, said = run(*nodes[:2])
    assert code == 0
    assert "copies of voters: 1, 2, 2 of 3: a majority" in said
    assert "a majority has all records below offset 707" in said
    code, _, said = run(nodes[2])
    assert code == 0 and "copies of voters: 3, 1 of 3: no majority, which 2 are" in said


def test_what_a_majority_has_is_where_the_second_of_three_ends(nodes: list[Path]) -> None:
    for node, offset in ((1, 705), (2, 706)):
        log = nodes[node] / LAST
        log.write_bytes(log.read_bytes()[: POSITIONS[offset]])
    found = rows(*nodes)
    assert {node: row["behind"] for node, row in found.items()} == {1: 0, 2: 2, 3: 1}
    said = run(*nodes)[2]
    assert f"best copy: {nodes[0]}/__cluster_metadata-0: epoch 2, end offset 707" in said
    assert "a majority has all records below offset 706" in said


def test_the_higher_epoch_is_best_and_others_diverge_where_it_began(nodes: list[Path]) -> None:
    led_by_another(nodes[1], 705, 4)
    found = rows(*nodes)
    assert [*found] == [2, 1, 3]
    assert found[2]["last_epoch"] == 4 and found[2]["end_offset"] == 706
    assert found[1]["diverges_at"] == found[3]["diverges_at"] == 705
    assert found[1]["behind"] == 1
    assert "a majority has all records below offset 705" in run(*nodes)[2]


def test_damage_is_named_and_a_snapshot_after_it_still_counts(nodes: list[Path]) -> None:
    log = nodes[0] / "__cluster_metadata-0" / f"{218:020d}.log"
    data = bytearray(log.read_bytes())
    data[10636 + 70] ^= 1
    log.write_bytes(data)
    (nodes[0] / "__cluster_metadata-0" / "quorum-state").write_text("{")
    (newest,) = nodes[0].rglob("*0635-*.checkpoint")
    newest.write_bytes(b"")
    code, _, said = run(*nodes)
    (row,) = (row for node, row in rows(*nodes).items() if node == 1)
    # From the snapshot at 595 on, all of the log is sound.
    assert (row["end_offset"], row["snapshot_end_offset"], row["behind"]) == (707, 595, 0)
    assert code == 3
    for name in (log, newest, log.parent / "quorum-state"):
        assert re.search(f"^{re.escape(str(name))}: position", said, re.MULTILINE)


def test_a_copy_without_any_sound_batch_is_the_last(nodes: list[Path]) -> None:
    for path in (nodes[1] / "__cluster_metadata-0").glob("*[tg]"):
        if path.suffix in (".log", ".checkpoint"):
            path.write_bytes(b"")
    found = rows(*nodes)
    assert [*found] == [1, 3, 2]
    assert (found[2]["last_epoch"], found[2]["end_offset"], found[2]["behind"]) == (-1, 0, 707)
    assert "a majority has all records below offset 707" in run(*nodes)[2]


def test_a_directory_called_rebuild_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(CONTROLLER, tmp_path / "rebuild")
    monkeypatch.chdir(tmp_path)
    for arguments in (["./rebuild"], ["--", "rebuild"], ["--format", "text", "rebuild"]):
        result = CliRunner().invoke(kafkalog, ["quorum", *arguments])
        assert (result.exit_code, "best copy: " in result.stdout) == (0, True)
    result = CliRunner().invoke(kafkalog, ["quorum", "rebuild"])
    assert (result.exit_code, "kafkalog quorum rebuild --help" in result.stderr) == (2, True)
