"""A real broker opens salvaged log directories without complaint, and serves all that was sound."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.salvage import main
from kafkalog.format.side_files.producer_snapshot import read_producer_snapshot
from kafkalog.inspection.partitions.salvage import SalvageSettings
from kafkalog.spark.jobs.job import ExitCode
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from tests.support.broker.consumed_rows import ConsumedRow
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.partition_files import demand_recovery
from tests.support.broker.prepared_cluster import (
    INDEX_INTERVAL_BYTES,
    TOPIC,
    Cluster,
    complaints,
    lines_about,
    prepared_cluster,
)
from tests.support.broker.salvaged_copies import (
    ALL_COPIES,
    SHORT_COPIES,
    DamagedCopy,
    committed_rows,
    damaged_log_dir,
    salvage_log_dir,
    salvage_logs,
    sound_rows,
)
from tests.support.repository import Unpack

# Offsets of the fixtures' topics: 0 to 2799, of the compressed one 0 to 2599.
_OFFSETS, _COMPRESSED_OFFSETS = 2800, 2600
# Files of a log that are as salvage left them once the broker runs; the last segment's indexes get
# room for more.
_KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


@dataclass(frozen=True, slots=True)
class Salvaged:
    """A broker that runs on a salvaged log directory, and all that is known of its partitions.

    `files` are the partitions' files as salvage wrote them, by partition and name.
    """

    server: KafkaServer
    cluster: Cluster
    copies: tuple[DamagedCopy, ...]
    sources: list[PartitionLog]
    rows: dict[int, dict[str, Any]]
    files: dict[int, dict[str, bytes]]


def _files(log_dir: Path, partition: int) -> dict[str, bytes]:
    directory = log_dir / f"{TOPIC}-{partition}"
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix in _KINDS}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(SHORT_COPIES, id="short"),
        pytest.param(ALL_COPIES, id="all", marks=pytest.mark.deep),
    ],
)
def salvaged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, unpacked: Unpack
) -> Iterator[Salvaged]:
    copies: tuple[DamagedCopy, ...] = request.param
    scratch = tmp_path_factory.mktemp("salvaged")
    cluster = prepared_cluster(scratch / "kafka", len(copies))
    variants = unpacked("unclean.logs") / "variants"
    logs = damaged_log_dir(cluster, copies, variants, scratch)
    target = cluster.work_dir / "salvaged"
    rows = salvage_log_dir(logs, target, cluster.topic_id())
    files = {partition: _files(target, partition) for partition in rows}
    with KafkaServer(cluster.work_dir, target) as server:
        yield Salvaged(server, cluster, copies, logs, rows, files)


@pytest.fixture(scope="module")
def sound(salvaged: Salvaged) -> dict[str, list[ConsumedRow]]:
    """What kafkalog reads of the damaged partitions, by the name of the damage."""
    return {
        salvaged.copies[log.partition or 0].name: sound_rows(
            log, salvaged.copies[log.partition or 0].log_start_offset
        )
        for log in salvaged.sources
    }


@pytest.fixture(scope="module")
def received(
    salvaged: Salvaged, sound: dict[str, list[ConsumedRow]]
) -> dict[str, dict[str, list[ConsumedRow]]]:
    """What consumers of both isolation levels receive, all there is; by level and damage."""
    levels = ("read_uncommitted", "read_committed")
    with ThreadPoolExecutor(len(levels)) as pool:
        found = pool.map(lambda level: salvaged.server.consume_all(TOPIC, level), levels)
    return {
        level: _by_copy(salvaged.copies, rows) for level, rows in zip(levels, found, strict=True)
    }


def _by_copy(
    copies: Sequence[DamagedCopy], rows: list[ConsumedRow]
) -> dict[str, list[ConsumedRow]]:
    found: dict[str, list[ConsumedRow]] = {copy.name: [] for copy in copies}
    for row in rows:
        found[copies[row.partition].name].append(row)
    return found


def test_the_broker_has_nothing_to_say_against_them(salvaged: Salvaged) -> None:
    # F180, F183, F184.
    text = salvaged.server.log_text()
    said = {
        copy.name: complaints(lines_about(text, partition))
        for partition, copy in enumerate(salvaged.copies)
    }
    assert said == {copy.name: [] for copy in salvaged.copies}
    # Each of them was looked at.
    for partition in range(len(salvaged.copies)):
        assert any("Completed load of" in line for line in lines_about(text, partition))


def test_the_broker_changes_none_of_their_files(salvaged: Salvaged) -> None:
    # F119, F180, F183.
    log_dir = salvaged.server.log_dir
    for partition, copy in enumerate(salvaged.copies):
        found = _files(log_dir, partition)
        # What producers did up to the log start no longer matters.
        written = {
            name: data
            for name, data in salvaged.files[partition].items()
            if not name.endswith(".snapshot") or int(name[:20]) > copy.log_start_offset
        }
        assert found.keys() == written.keys(), copy.name
        for name, data in written.items():
            if name.endswith(".snapshot"):
                # The order of a hash map is not promised.
                entries = sorted(read_producer_snapshot(data))
                assert sorted(read_producer_snapshot(found[name])) == entries, (copy.name, name)
                continue
            assert found[name][: len(data)] == data, (copy.name, name)
            # Behind the entries of the last segment's indexes is room for those to come.
            assert not any(found[name][len(data) :]), (copy.name, name)


def test_the_log_begins_and_ends_where_salvage_said(salvaged: Salvaged) -> None:
    # F184.
    told = {
        partition: (row["log_start_offset"], row["log_end_offset"])
        for partition, row in salvaged.rows.items()
    }
    starts, ends = (
        salvaged.server.offsets(TOPIC, "earliest"),
        salvaged.server.offsets(TOPIC, "latest"),
    )
    assert {partition: (starts[partition], ends[partition]) for partition in ends} == told
    assert all(row["broker_starts"] for row in salvaged.rows.values())


def test_a_consumer_receives_exactly_the_sound_records(
    sound: dict[str, list[ConsumedRow]], received: dict[str, dict[str, list[ConsumedRow]]]
) -> None:
    # F181.
    for name, rows in received["read_uncommitted"].items():
        assert rows == sound[name], name


def test_a_consumer_of_committed_records_receives_no_aborted_ones(
    salvaged: Salvaged,
    sound: dict[str, list[ConsumedRow]],
    received: dict[str, dict[str, list[ConsumedRow]]],
) -> None:
    # F104, F112, F183.
    for partition, copy in enumerate(salvaged.copies):
        expected = committed_rows(copy, partition, sound[copy.name])
        assert received["read_committed"][copy.name] == expected, copy.name


def test_every_offset_that_no_consumer_receives_is_reported_as_lost(
    salvaged: Salvaged, received: dict[str, dict[str, list[ConsumedRow]]]
) -> None:
    # F182.
    untold: dict[str, list[int]] = {}
    for partition, copy in enumerate(salvaged.copies):
        if copy.variant is None:
            continue
        end = _COMPRESSED_OFFSETS if copy.variant.startswith("compressed") else _OFFSETS
        missing = set(range(copy.log_start_offset, end))
        missing -= {row.offset for row in received["read_uncommitted"][copy.name]}
        for lost in salvaged.rows[partition]["lost_ranges"]:
            if lost["first_offset"] is not None:
                last = lost.get("last_offset")
                missing -= set(range(lost["first_offset"], end if last is None else last + 1))
        if missing:
            untold[copy.name] = sorted(missing)
    assert untold == {}


@pytest.mark.deep
def test_a_broker_that_checks_every_batch_finds_nothing_either(
    tmp_path: Path, unpacked: Unpack
) -> None:
    # F113, F114, F183: without recovery points all segments are recovered.
    cluster = prepared_cluster(tmp_path / "kafka", len(ALL_COPIES))
    variants = unpacked("unclean.logs") / "variants"
    logs = damaged_log_dir(cluster, ALL_COPIES, variants, tmp_path)
    target = cluster.work_dir / "salvaged"
    rows = salvage_log_dir(logs, target, cluster.topic_id())
    demand_recovery(target)
    with KafkaServer(cluster.work_dir, target) as server:
        ends = server.offsets(TOPIC, "latest")
        text = server.log_text()
    assert ends == {partition: row["log_end_offset"] for partition, row in rows.items()}
    for partition, copy in enumerate(ALL_COPIES):
        lines = lines_about(text, partition)
        assert complaints(lines) == [], copy.name
        checked = [line for line in lines if "Recovering unflushed segment" in line]
        assert len(checked) == rows[partition]["segments"], copy.name


@pytest.mark.deep
@pytest.mark.spark
def test_what_the_job_writes_can_take_the_place_of_what_was_damaged(
    spark: SparkSession, tmp_path: Path, unpacked: Unpack
) -> None:
    # F180, F184; docs/recovery.md, step by step.
    cluster = prepared_cluster(tmp_path / "kafka", len(SHORT_COPIES))
    damaged_log_dir(cluster, SHORT_COPIES, unpacked("unclean.logs") / "variants", tmp_path)
    damaged = cluster.log_dir.rename(tmp_path / "damaged")
    tables = tmp_path / "tables"
    to = ["--to", str(cluster.log_dir), "--output-dir", str(tables), "--format", "parquet"]
    assert main([str(damaged), *to, "--index-interval-bytes", "1024"]) == ExitCode.DONE
    rows = spark.read.parquet(str(tables / "salvage")).collect()
    with KafkaServer(cluster.work_dir) as server:
        ends = server.offsets(TOPIC, "latest")
        text = server.log_text()
        received = server.consume_all(TOPIC)
    assert ends == {row.partition: row.log_end_offset for row in rows}
    for partition, copy in enumerate(SHORT_COPIES):
        assert complaints(lines_about(text, partition)) == [], copy.name
    logs = find_partitions([str(damaged)])
    starts = [copy.log_start_offset for copy in SHORT_COPIES]
    sound = [row for log in logs for row in sound_rows(log, starts[log.partition or 0])]
    assert sorted(received, key=lambda row: (row.partition, row.offset)) == sorted(
        sound, key=lambda row: (row.partition, row.offset)
    )


@pytest.mark.deep
def test_a_broker_does_complain_of_what_was_not_salvaged(tmp_path: Path, unpacked: Unpack) -> None:
    # The look for complaints would see them.
    copies = [copy for copy in SHORT_COPIES if copy.name != "epoch-checkpoint-garbage"]
    cluster = prepared_cluster(tmp_path / "kafka", len(copies))
    damaged_log_dir(cluster, copies, unpacked("unclean.logs") / "variants", tmp_path)
    demand_recovery(cluster.log_dir)
    with KafkaServer(cluster.work_dir) as server:
        text = server.log_text()
    silent = [
        copy.name
        for partition, copy in enumerate(copies)
        if not complaints(lines_about(text, partition))
    ]
    # Recovery does not read records (F114).
    assert silent == ["varint-broken-valid-crc"]


@pytest.mark.deep
def test_a_batch_whose_offset_jumped_is_served_again_under_the_offset_of_its_place(
    tmp_path: Path, unpacked: Unpack
) -> None:
    # F196: left as it is, a broker empties its segment (F115), as the fixture's story tells.
    copies = (DamagedCopy("base-offset-jump", variant="base-offset-jump"),)
    cluster = prepared_cluster(tmp_path / "kafka", len(copies))
    variants = unpacked("unclean.logs") / "variants"
    logs = damaged_log_dir(cluster, copies, variants, tmp_path)
    target = cluster.work_dir / "salvaged"
    settings = SalvageSettings(
        time.time_ns() // 1_000_000, INDEX_INTERVAL_BYTES, cluster.topic_id(), keeps_doubtful=True
    )
    rows = salvage_logs(logs, target, settings)
    assert (rows[0]["doubtful_batches"], rows[0]["lost_ranges"]) == (1, [])
    demand_recovery(target)
    with KafkaServer(cluster.work_dir, target) as server:
        received = server.consume_all(TOPIC)
        text = server.log_text()
    assert [row.offset for row in received] == list(range(_OFFSETS))
    assert complaints(lines_about(text, 0)) == []
