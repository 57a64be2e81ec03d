"""Planning opens no more than it needs, and a task receives no more than it needs, however many
segments there are."""

import os
import pickle
from pathlib import Path

import pytest

from kafkalog.format.segment_writer import write_segment
from kafkalog.spark.source.batch_reader import KafkaLogReader, ReadGroup
from kafkalog.storage.files.read_counts import read_counts
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups
from tests.support.logs.log_dirs import add_meta_properties
from tests.support.logs.samples import batch

BATCHES, COUNT = 20, 3
MIB = 1024 * 1024


def add_log(log_dir: Path, name: str, segments: int) -> None:
    """A partition of segments of 20 batches each, with an index entry for nearly all of them."""
    partition = log_dir / name
    partition.mkdir(parents=True)
    for number in range(segments):
        base = number * BATCHES * COUNT
        batches = [batch(base + n * COUNT, COUNT) for n in range(BATCHES)]
        files = write_segment(batches, base, index_interval_bytes=100)
        for file, content in files.by_name.items():
            (partition / file).write_bytes(content)


def opened_in_planning(place: Path, **given: str) -> int:
    before = read_counts.copy()
    planned_groups(read_options({"path": str(place), **given}))
    return int(read_counts.since(before)["files"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("logs")
    for number in range(4):
        add_log(place, f"orders-{number}", 5)
    return place


@pytest.mark.parametrize(
    ("given", "opened"),
    [
        pytest.param({}, 0, id="names are enough"),
        pytest.param({"assign": '{"orders":[1]}'}, 0, id="of one partition as well"),
        pytest.param(
            {"assign": '{"orders":[1]}', "startingOffsets": '{"orders":{"1":70}}'},
            0,
            id="whoever reads from an offset looks into the index",
        ),
        pytest.param({"maxPartitionBytes": "1000"}, 2 * 20, id="a log and its index to cut it"),
        pytest.param({"fromTimestamp": "1270"}, 3 * 20, id="indexes and the header they lead to"),
        pytest.param({"fromTimestamp": "1000"}, 20, id="time indexes"),
    ],
)
def test_no_more_files_are_opened_than_needed(
    given: dict[str, str], opened: int, place: Path
) -> None:
    assert opened_in_planning(place, **given) == opened


def test_each_directory_is_listed_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    scandir = os.scandir

    def noted(path: str) -> object:
        listed.append(str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", noted)
    planned_groups(read_options({"path": str(place)}))
    assert sorted(listed) == sorted([str(place), *map(str, place.glob("orders-*"))])


def largest_task(paths: list[Path], **given: str) -> int:
    text = str([str(path) for path in paths]).replace("'", '"')
    # A segment for each task.
    options = read_options({"paths": text, "maxPartitionBytes": "1", **given})
    return max(len(pickle.dumps(ReadGroup(group))) for group in planned_groups(options))


@pytest.mark.parametrize("given", [{}, {"isolationLevel": "read_committed"}])
def test_what_a_task_receives_does_not_grow_with_the_log(
    given: dict[str, str], tmp_path: Path
) -> None:
    sizes = []
    for segments in (3, 40):
        brokers = [tmp_path / f"{segments}-{broker}" for broker in (1, 2)]
        for number, broker in enumerate(brokers):
            add_log(broker, "orders-0", segments)
            add_meta_properties(broker, node_id=number)
        sizes.append((largest_task(brokers[:1], **given), largest_task(brokers, **given)))
    # Longer numbers, no more of them.
    assert sizes[1][0] <= sizes[0][0] + 30
    assert sizes[1][1] <= sizes[0][1] + 60
    assert max(sizes[1]) < 3000


def test_a_reader_is_shipped_without_what_only_planning_needs(place: Path) -> None:
    offsets = str({"orders": {str(number): 0 for number in range(4)}}).replace("'", '"')
    plain, bounded = (
        KafkaLogReader(read_options({"path": str(place), **given}), ("offset",))
        for given in ({}, {"startingOffsets": offsets})
    )
    assert len(pickle.dumps(bounded)) == len(pickle.dumps(plain)) < 3000
