"""Images of `__cluster_metadata` against what real controllers wrote and told: their snapshots, and
the answers of the Admin client."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkalog.coordination.metadata.cluster_rows import cluster_rows
from kafkalog.coordination.metadata.image import START, MetadataImage, Moment
from kafkalog.coordination.metadata.metadata_records import apply
from kafkalog.inspection.metadata.metadata_log import MetadataBatch, MetadataEntry, MetadataLog
from kafkalog.inspection.metadata.replay import MetadataReplay, image_at
from kafkalog.messages.metadata_transactions import records_in_force
from tests.support.messages.metadata_images import compared_snapshots, have_same_state, opened

Unpacked = Callable[[str], Path]
# Where the finalized features were when the Admin client asked for them: admin.json.
ASKED_AT = Moment(642)


def copied(unpacked: Unpacked, name: str, target: Path) -> Path:
    """A log directory with the set's metadata alone, without its snapshots."""
    found = unpacked(f"{name}.logs") / "log-dirs" / "__cluster_metadata-0"
    shutil.copytree(found, target / found.name, ignore=shutil.ignore_patterns("*.checkpoint"))
    return target


def admin(unpacked: Unpacked, name: str) -> dict[str, Any]:
    return json.loads((unpacked(f"{name}.golden") / "admin.json").read_text())


def test_the_log_replayed_up_to_a_snapshot_equals_the_snapshot(unpacked: Unpacked) -> None:
    # F760, F764
    assert compared_snapshots(unpacked("kafka44.logs") / "log-dirs") == 10


@pytest.mark.parametrize(("name", "moment"), [("kafka44", ASKED_AT), ("tiered43", Moment())])
def test_topics_and_their_configs_are_what_the_admin_client_was_told(
    name: str, moment: Moment, unpacked: Unpacked
) -> None:
    # F761 to F763; the answers are of the time before the brokers stopped.
    answers = admin(unpacked, name)
    log = opened(unpacked(f"{name}.logs") / "log-dirs")
    image = image_at(log, moment).image
    topics = {row["topic"]: row for row in cluster_rows("topic", image)}
    assert {name: row["topic_id"] for name, row in topics.items()} == {
        name: told["topicId"] for name, told in answers["topics"].items()
    }
    partitions = cluster_rows("partition", image)
    # All replicas are on the only broker.
    assert [(row["topic"], row["partition"], row["replicas"]) for row in partitions] == [
        (name, each["partition"], [1])
        for name, told in sorted(answers["topics"].items())
        for each in told["partitions"]
    ]
    if name == "kafka44":
        leaders = [(row["leader"], row["isr"]) for row in partitions]
        assert leaders == [(1, [1])] * len(partitions)
    for topic, told in answers["topic_configs_not_default"].items():
        assert topics[topic]["configs"] == told


def test_features_are_what_the_admin_client_was_told(unpacked: Unpacked) -> None:
    answered = admin(unpacked, "kafka44")["features"]
    finalized = answered.partition("supportedFeatures")[0]
    levels = re.findall(r"\((\S+) -> FinalizedVersionRange\[min_version_level:(\d+)", finalized)
    image = image_at(opened(unpacked("kafka44.logs") / "log-dirs"), ASKED_AT).image
    found = {row["feature"]: row["level"] for row in cluster_rows("feature", image)}
    assert found == {name: int(level) for name, level in levels}


def batches(log: MetadataLog) -> Iterator[MetadataBatch]:
    yield from log.batches(log.start_offset)


Tables = dict[str, dict[Any, Any]]


def whole_tables(log: MetadataLog) -> dict[int, Tables]:
    """The image's tables before each batch, by its base offset."""
    image, found = MetadataImage(), dict[int, Tables]()

    def entries() -> Iterator[MetadataEntry]:
        for batch in batches(log):
            tables = {name: dict(rows) for name, rows in image.tables.items()}
            found[batch.header.base_offset] = tables
            yield from batch.entries()

    for entry in records_in_force(entries()):
        apply(image, entry)
    return found


def test_every_prefix_of_a_log_gives_the_image_of_its_whole_batches(
    unpacked: Unpacked, tmp_path: Path
) -> None:
    # F765: a torn batch at the end of a log is none.
    log = opened(copied(unpacked, "tiered43", tmp_path))
    tables, found = whole_tables(log), [*batches(log)]
    path = Path(found[0].path)
    data = path.read_bytes()
    for batch in found[1:]:
        for size in (batch.position, batch.position + 7, batch.position + len(batch.data) - 1):
            path.write_bytes(data[:size])
            replay = image_at(opened(tmp_path))
            assert replay.next_offset == batch.header.base_offset
            assert replay.image.tables == tables[batch.header.base_offset]
            # F922: a producer snapshot names the end that the log had.
            assert [damage.fault for damage in replay.damages] == ["missing_end"]


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.deep)])
def test_a_damaged_batch_ends_the_image_and_is_named(
    every: int, unpacked: Unpacked, tmp_path: Path
) -> None:
    # F765
    log = opened(copied(unpacked, "kafka44", tmp_path))
    tables, found = whole_tables(log), [*batches(log)]
    for batch in found[1::every]:
        path = Path(batch.path)
        data = path.read_bytes()
        place = batch.position + len(batch.data) // 2
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        replay = image_at(opened(tmp_path))
        path.write_bytes(data)
        (damage,) = replay.damages
        assert (damage.path, damage.position) == (batch.path, batch.position)
        assert replay.next_offset == batch.header.base_offset
        assert replay.image.tables == tables[batch.header.base_offset]


def test_a_snapshot_replaces_what_is_damaged_before_it(unpacked: Unpacked, tmp_path: Path) -> None:
    # F764, F766
    source = unpacked("kafka44.logs") / "log-dirs"
    whole = opened(source)
    shutil.copytree(source / "__cluster_metadata-0", tmp_path / "__cluster_metadata-0")
    (batch,) = (batch for batch in batches(whole) if batch.header.base_offset == 107)
    path = tmp_path / "__cluster_metadata-0" / Path(batch.path).name
    data = bytearray(path.read_bytes())
    data[batch.position + 70] ^= 1
    path.write_bytes(data)
    log = opened(tmp_path)
    assert image_at(log).image.tables == image_at(whole).image.tables

    replay = MetadataReplay(log, START, Moment())
    changes = [*replay.changes()]
    assert [damage.position for damage in replay.damages] == [batch.position]
    assert have_same_state(replay.image, image_at(whole).image)
    (lost,) = {(each.offset, each.record_name) for each in changes if each.record_name is None}
    assert lost == (171, None)
    known = [each.change.topic for each in changes if each.offset == 171]
    assert "shop.retention.all" in known


def test_an_unfinished_or_damaged_snapshot_is_passed_over(
    unpacked: Unpacked, tmp_path: Path
) -> None:
    # F195, F764
    source = unpacked("kafka44.logs") / "log-dirs" / "__cluster_metadata-0"
    shutil.copytree(source, tmp_path / source.name)
    last, before = opened(tmp_path).snapshots[-1:-3:-1]
    whole = image_at(opened(tmp_path))
    data = Path(last.path).read_bytes()
    for bad in (data[:-75], data[:400] + b"\xff" + data[401:], b""):
        Path(last.path).write_bytes(bad)
        replay = image_at(opened(tmp_path))
        assert replay.snapshot == before
        assert [error.path for error in replay.unusable] == [last.path]
        assert have_same_state(replay.image, whole.image)
