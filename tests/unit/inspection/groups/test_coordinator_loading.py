"""Coordinators that load partitions, record by record: what real brokers do with them."""

from pathlib import Path

import pytest

from kafkalog.inspection.groups.coordinator_loading import (
    CoordinatorLoad,
    CoordinatorRules,
    coordinator_load,
)
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.broker.coordinator_cases import CASES, CoordinatorCase

EACH_CASE = [
    pytest.param(topic, case, id=f"{topic}-{case.name}")
    for topic, cases in CASES.items()
    for case in cases
]


def load(folder: Path, topic: str, case: CoordinatorCase, release: str) -> CoordinatorLoad | None:
    directory = folder / f"{topic}-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(b"".join(case.batches()))
    (log,) = find_partitions([str(folder)])
    return coordinator_load(log, CoordinatorRules.of(release))


@pytest.mark.parametrize("release", ["4.0", "4.1", "4.2", "4.3", "4.4"])
@pytest.mark.parametrize(("topic", "case"), EACH_CASE)
def test_the_first_record_that_stops_it_is_found(
    topic: str, case: CoordinatorCase, release: str, tmp_path: Path
) -> None:
    # F1000 to F1007.
    found = load(tmp_path, topic, case, release)
    assert found is not None
    assert found.offset == case.stops(release), found
    assert found.loads == (case.stops(release) is None)
    assert found.damage is None
    assert found.skipped_records == case.skipped.get(release, case.skipped.get("", 0))
