"""What is planned for damaged logs is what a real broker then does to them."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkalog.format.side_files.checkpoints import write_offset_checkpoint
from kafkalog.format.side_files.leader_epochs import EpochStart, read_leader_epochs, with_epoch
from kafkalog.storage.log_dir.log_dir import CLEAN_SHUTDOWN
from kafkalog.storage.partition_log import LEADER_EPOCHS
from kafkalog.storage.recovery.recovery import RecoveryPlan, RecoverySettings, plan_recovery
from tests.support.broker.kafka_server import KafkaServer, ServerError
from tests.support.broker.planned_damages import (
    FATAL_DAMAGES,
    PLANNED_DAMAGES,
    PlannedDamage,
    history,
)
from tests.support.broker.prepared_cluster import (
    INDEX_INTERVAL_BYTES,
    TOPIC,
    Cluster,
    leader_starts,
    prepared_cluster,
)

pytestmark = pytest.mark.deep

_HOUR_MS = 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Outcome:
    """The plan for a partition, and what a broker made of it.

    `became_leader` is the epoch and the offset from which on the broker leads the partition.
    """

    plan: RecoveryPlan
    offsets: tuple[int, int]
    sizes: dict[str, int]
    epochs: list[EpochStart]
    became_leader: tuple[int, int]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    work_dir = tmp_path_factory.mktemp("planned") / "kafka"
    return prepared_cluster(work_dir, len(PLANNED_DAMAGES))


def _damage(cluster: Cluster, damages: Sequence[PlannedDamage], scratch: Path) -> None:
    """Damaged logs in place of the partitions, and the checkpoints to go with them."""
    points: dict[tuple[str, int], int] = {}
    starts: dict[tuple[str, int], int] = {}
    # Producers that were idle for a day would be forgotten: these were not.
    log = history(time.time_ns() // 1_000_000 - _HOUR_MS)
    for partition, each in enumerate(damages):
        directory = scratch / f"{each}-0"
        log.write(directory, INDEX_INTERVAL_BYTES)
        each.damage(directory, log)
        cluster.fill(partition, directory)
        points[TOPIC, partition] = log.segments[each.recovery_segment]
        starts[TOPIC, partition] = each.log_start_offset
    for name, offsets in (("recovery-point", points), ("log-start", starts)):
        text = write_offset_checkpoint(offsets)
        (cluster.log_dir / f"{name}-offset-checkpoint").write_text(text)


def _plans(
    cluster: Cluster, damages: Sequence[PlannedDamage], *, is_clean_shutdown: bool
) -> list[RecoveryPlan]:
    segments = history(0).segments
    return [
        plan_recovery(
            str(cluster.directory(partition)),
            RecoverySettings(
                is_clean_shutdown=is_clean_shutdown,
                recovery_point=segments[each.recovery_segment],
                log_start_offset=each.log_start_offset,
                now_ms=time.time_ns() // 1_000_000,
                index_interval_bytes=INDEX_INTERVAL_BYTES,
            ),
        )
        for partition, each in enumerate(damages)
    ]


def _stop(cluster: Cluster, *, is_clean_shutdown: bool) -> None:
    """The cluster was stopped cleanly when it was prepared: let it look otherwise."""
    mark = cluster.log_dir / CLEAN_SHUTDOWN
    assert mark.exists()
    if not is_clean_shutdown:
        mark.unlink()


@pytest.fixture(scope="module", params=["unclean", "clean"])
def outcomes(
    request: pytest.FixtureRequest, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Outcome]]:
    """A start of a broker after the stop, by the name of the damage."""
    scratch = tmp_path_factory.mktemp(request.param)
    copied = cluster.copy(scratch / "kafka")
    is_clean_shutdown = request.param == "clean"
    damages = [
        each
        for each in PLANNED_DAMAGES
        if not (is_clean_shutdown and each.is_fatal_after_clean_stop)
    ]
    _damage(copied, damages, scratch)
    _stop(copied, is_clean_shutdown=is_clean_shutdown)
    plans = _plans(copied, damages, is_clean_shutdown=is_clean_shutdown)
    with KafkaServer(copied.work_dir) as server:
        earliest, latest = server.offsets(TOPIC, "earliest"), server.offsets(TOPIC, "latest")
        leaders = leader_starts(server.log_text())
        yield {
            each.name: Outcome(
                plan=plans[partition],
                offsets=(earliest[partition], latest[partition]),
                sizes={
                    path.name: path.stat().st_size for path in copied.directory(partition).iterdir()
                },
                epochs=read_leader_epochs(
                    (copied.directory(partition) / LEADER_EPOCHS).read_text()
                ),
                became_leader=leaders[partition],
            )
            for partition, each in enumerate(damages)
        }


def test_the_log_begins_and_ends_as_planned(outcomes: dict[str, Outcome]) -> None:
    # F113, F114, F118, F121 to F123.
    planned = {
        name: (each.plan.start_error, each.plan.log_start_offset, each.plan.log_end_offset)
        for name, each in outcomes.items()
    }
    assert planned == {name: (None, *each.offsets) for name, each in outcomes.items()}
    # The damages make a difference.
    assert len(set(planned.values())) > 1


def test_the_files_are_those_planned_and_as_large(outcomes: dict[str, Outcome]) -> None:
    # F115, F117, F119, F120, F122.
    for name, each in outcomes.items():
        # As leader the broker has written one more epoch, which is looked at below.
        assert each.sizes.keys() == each.plan.files.keys() | {LEADER_EPOCHS}, name
        planned = {
            file: size
            for file, size in each.plan.files.items()
            if size is not None and file != LEADER_EPOCHS
        }
        assert {file: each.sizes[file] for file in planned} == planned, name


def test_the_leader_epochs_are_those_planned(outcomes: dict[str, Outcome]) -> None:
    # F107, F108, F116.
    for name, each in outcomes.items():
        epoch, offset = each.became_leader
        assert each.epochs == with_epoch(each.plan.leader_epochs, EpochStart(epoch, offset)), name
        assert offset == each.plan.log_end_offset, name


@pytest.mark.parametrize(
    ("damage", "is_clean_shutdown"),
    [
        *((damage, False) for damage in FATAL_DAMAGES),
        *((damage, True) for damage in PLANNED_DAMAGES if damage.is_fatal_after_clean_stop),
    ],
    ids=str,
)
def test_where_a_plan_has_a_start_error_no_broker_starts(
    damage: PlannedDamage, is_clean_shutdown: bool, cluster: Cluster, tmp_path: Path
) -> None:
    # F111, F118, F124.
    copied = cluster.copy(tmp_path / "kafka")
    _damage(copied, [damage], tmp_path)
    _stop(copied, is_clean_shutdown=is_clean_shutdown)
    (plan,) = _plans(copied, [damage], is_clean_shutdown=is_clean_shutdown)
    assert plan.start_error is not None
    with pytest.raises(ServerError, match="ended with status 1"):
        KafkaServer(copied.work_dir).start()
