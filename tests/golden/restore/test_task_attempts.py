"""Tasks that write partitions can run twice, and fail: docs/restore.md F1030, F1033 and F1279. Set
restore44 of tests/golden/README.md."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kafkalog.errors import LogDirError
from kafkalog.inspection.metadata.cluster_from_data import RebuiltRecord
from kafkalog.questions.restore.metadata import RestoredMetadata
from kafkalog.questions.restore.partitions.copied_bytes import PieceCopies
from kafkalog.questions.restore.partitions.partition_plans import PartitionPlan
from kafkalog.questions.restore.restoring import Restored, write_restored
from kafkalog.questions.restore.runs import Wanted, planned, written
from kafkalog.questions.restore.sources import sources_of
from kafkalog.storage.files.unreadable_input import note_unlisted, noted_unreadable
from kafkalog.views.engine import LocalViews
from kafkalog.views.options.restore_options import RestoreOptions
from tests.support.golden.restored_copies import AS_OF_MS

OPTIONS = RestoreOptions(
    as_of=AS_OF_MS,
    strict=False,
    nodes=None,
    replication=1,
    kafka=None,
    into=None,
    topics=("events", "state"),
    topic_pattern=None,
    group_pattern=None,
    latest_topics=(),
    keep_cluster_id=True,
    create_missing=False,
    keep_retention=False,
    reuse_offsets=False,
    offset_gap=1000,
    links=False,
    hash_inputs=False,
    suppress=None,
)


class Engine(LocalViews):
    """Runs each task twice, after one that has failed."""

    def tasks(self, run: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        for item in items:
            failed = Path(item.target, f"{item.plan.name}.0.attempt")
            failed.mkdir()
            (failed / "half-written.log").write_bytes(b"half")
            assert [*run(item)]
            yield from run(item)


def files(directory: Path) -> dict[str, bytes]:
    """The files of the topics of applications."""
    paths = directory.glob("data/[!_]*/*")
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def test_a_task_that_runs_twice_writes_the_same(inputs: list[Path], tmp_path: Path) -> None:
    once = LocalViews([*map(str, inputs)], [], 1)
    found = planned(once, sources_of(once.log_dirs), Wanted(OPTIONS), AS_OF_MS)
    for name, views in (("once", once), ("twice", Engine(once.log_dirs, [], 1))):
        (tmp_path / name).mkdir()
        write_restored(views, Restored(found.plan), str(tmp_path / name), lambda size: None)
    assert files(tmp_path / "once") == files(tmp_path / "twice") != {}
    names = [sorted(os.listdir(tmp_path / name / "data")) for name in ("once", "twice")]
    assert names[0] == names[1]


def test_bytes_that_were_damaged_on_the_way_are_refused(
    inputs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first segments too, which a broker would not verify when it starts."""
    copy = PieceCopies.copy
    damaged: list[str] = []

    def damaging(copies: PieceCopies, pieces: Any, target: str, end: int | None = None) -> None:
        copy(copies, pieces, target, end)
        if end is None and not damaged:
            damaged.append(target)
            with Path(target).open("r+b") as file:
                file.seek(-1, os.SEEK_END)
                last = file.read(1)[0]
                file.seek(-1, os.SEEK_END)
                file.write(bytes([last ^ 1]))

    monkeypatch.setattr(PieceCopies, "copy", damaging)
    views = LocalViews([*map(str, inputs)], [], 1)
    given = views, sources_of(views.log_dirs), Wanted(OPTIONS), AS_OF_MS
    with pytest.raises(LogDirError, match="not sound, and is not kept"):
        written(*given, str(tmp_path / "restored"))
    assert damaged
    assert [*tmp_path.iterdir()] == []


def test_partitions_that_no_broker_would_lead_are_refused(
    inputs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is wrong with their logs: it is the metadata that has no replica in sync, F1188."""
    partitions = RestoredMetadata._partitions

    def without_replicas_in_sync(metadata: RestoredMetadata) -> Iterator[RebuiltRecord]:
        for each in partitions(metadata):
            yield each._replace(value={**each.value, "isr": [], "lastKnownElr": []})

    monkeypatch.setattr(RestoredMetadata, "_partitions", without_replicas_in_sync)
    views = LocalViews([*map(str, inputs)], [], 1)
    given = views, sources_of(views.log_dirs), Wanted(OPTIONS), AS_OF_MS
    with pytest.raises(LogDirError, match=r"not kept: .*NO LEADER: 13 partitions"):
        written(*given, str(tmp_path / "restored"))
    assert [*tmp_path.iterdir()] == []


def test_what_cannot_be_read_back_is_refused(
    inputs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest would have no checksum for it."""

    def failing(path: str) -> tuple[None, None]:
        note_unlisted(path, "Input/output error")
        return None, None

    monkeypatch.setattr("kafkalog.questions.restore.manifest._facts", failing)
    with noted_unreadable():
        views = LocalViews([*map(str, inputs)], [], 1)
        given = views, sources_of(views.log_dirs), Wanted(OPTIONS), AS_OF_MS
        with pytest.raises(LogDirError, match=r"is not kept: .*Input/output error"):
            written(*given, str(tmp_path / "restored"))
    assert [*tmp_path.iterdir()] == []


def test_the_plan_is_forgotten_before_the_judgement(
    inputs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 98: of many partitions there is not memory for both."""
    left: list[object] = []

    def judged(_views: object, _written: object) -> None:
        gc.collect()
        left.extend(each for each in gc.get_objects() if isinstance(each, PartitionPlan))

    monkeypatch.setattr("kafkalog.questions.restore.runs.refuse_unsound", judged)
    views = LocalViews([*map(str, inputs)], [], 1)
    sources = sources_of(views.log_dirs)
    assert sources.copies
    written(views, sources, Wanted(OPTIONS), AS_OF_MS, str(tmp_path / "restored"))
    assert left == []
    assert not sources.copies
