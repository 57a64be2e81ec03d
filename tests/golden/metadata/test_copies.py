"""Copies of one log of metadata: which one counts, and where they diverge. Rule: F768."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.errors import LogDirError
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.inspection.metadata.copies import LogWalk, best_copy, divergence, metadata_copies

Unpacked = Callable[[str], Path]


def walk(end_offset: int, *epochs: tuple[int, int]) -> LogWalk:
    """A copy by its epochs and the offsets where they begin."""
    return LogWalk([EpochStart(*each) for each in epochs], end_offset)


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [
        (walk(10, (1, 0)), walk(10, (1, 0)), None),
        (walk(10, (1, 0)), walk(15, (1, 0)), None),
        (walk(10, (1, 0)), walk(15, (1, 0), (2, 10)), None),
        # The leader of epoch 2 has not seen what epoch 1 had from offset 8 on.
        (walk(10, (1, 0)), walk(15, (1, 0), (2, 8)), 8),
        (walk(12, (1, 0), (2, 9)), walk(15, (1, 0), (3, 8)), 8),
        (walk(12, (1, 0), (2, 8)), walk(15, (1, 0), (3, 8)), 8),
        # The beginning of one was deleted after a snapshot.
        (walk(15, (1, 6), (2, 8)), walk(15, (1, 0), (2, 8)), None),
        (walk(15, (2, 9)), walk(12, (1, 0), (2, 8)), None),
        (walk(15), walk(12, (1, 0)), None),
    ],
)
def test_copies_diverge_where_different_leaders_wrote(
    one: LogWalk, other: LogWalk, place: int | None
) -> None:
    assert divergence(one, other) == divergence(other, one) == place


def test_the_higher_epoch_counts_and_then_the_longer_log(
    unpacked: Unpacked, tmp_path: Path
) -> None:
    source = unpacked("kafka44.logs") / "log-dirs"
    for name in ("old", "cut", "whole"):
        shutil.copytree(source / "__cluster_metadata-0", tmp_path / name / "__cluster_metadata-0")
        shutil.copy(source / "meta.properties", tmp_path / name)
    segments = {name: tmp_path / name / "__cluster_metadata-0" for name in ("old", "cut", "whole")}
    last = segments["cut"] / f"{660:020d}.log"
    last.write_bytes(last.read_bytes()[:-1])
    # In front of the restart: a copy of epoch 1, and more segments that do not follow on it.
    for path in (*segments["old"].glob("*2.checkpoint"), *segments["old"].glob("*458.log")):
        path.unlink()
    whole, cut, old = (
        metadata_copies([str(tmp_path / name)])[0] for name in ("whole", "cut", "old")
    )
    assert whole.position == (2, 707) and whole.damages == []
    # By the dumps of kafka-dump-log: the last batch has offset 706, epoch 2 begins with 376.
    assert cut.position == (2, 706)
    assert whole.walk.epochs == [EpochStart(1, 0), EpochStart(2, 376)]
    assert best_copy([old, cut, whole]) is whole
    assert best_copy([old, cut]) is cut
    assert whole.quorum_state and whole.quorum_state.voters == (1,)
    assert whole.directory_id == "58re7iadeZ9ThE6GcWduuA"


def test_copies_of_two_clusters_are_refused(unpacked: Unpacked) -> None:
    paths = [str(unpacked(f"{name}.logs") / "log-dirs") for name in ("kafka44", "tiered43")]
    with pytest.raises(LogDirError, match="of different clusters"):
        metadata_copies(paths)
    with pytest.raises(LogDirError, match="no __cluster_metadata-0"):
        metadata_copies([f"{paths[0]}/shop.tx-0"])
