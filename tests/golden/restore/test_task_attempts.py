"""Tasks that write partitions can run twice, and fail: docs/restore.md F1030 and F1033. Set
restore44 of tests/golden/README.md."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kafkalog.questions.restore.restoring import Restored, write_restored
from kafkalog.questions.restore.runs import Wanted, planned
from kafkalog.questions.restore.sources import sources_of
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
