"""Coordinators that load partitions, record by record: what real brokers do with them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkalog.inspection.groups.coordinator_loading import (
    Consequence,
    CoordinatorLoad,
    CoordinatorRules,
    coordinator_load,
)
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from tests.support.broker.releases.coordinator_cases import (
    CASES,
    GROUP_CASES,
    SHARE_CASES,
    TRANSACTION_CASES,
    CoordinatorCase,
    commit,
)

EACH_CASE = [
    pytest.param(topic, case, id=f"{topic}-{case.name}")
    for topic, cases in CASES.items()
    for case in cases
]


def load(folder: Path, topic: str, case: CoordinatorCase, release: str) -> CoordinatorLoad | None:
    directory = folder / release / f"{topic}-0"
    directory.mkdir(parents=True)
    (directory / f"{0:020d}.log").write_bytes(b"".join(case.batches()))
    (log,) = find_partitions([str(directory)])
    return coordinator_load(log, CoordinatorRules.of(release))


@pytest.mark.parametrize("release", ["3.9", "4.0", "4.1", "4.2", "4.3", "4.4"])
@pytest.mark.parametrize(("topic", "case"), EACH_CASE)
def test_the_first_record_that_stops_it_is_found(
    topic: str, case: CoordinatorCase, release: str, tmp_path: Path
) -> None:
    # F1000 to F1007.
    found = load(tmp_path, topic, case, release)
    if topic == SHARE_GROUP_STATE and release == "3.9":
        assert found is None
        return
    assert found is not None
    assert found.offset == case.stops(release), found
    assert found.loads == (case.stops(release) is None)
    assert found.damage is None
    assert found.skipped_records == case.skips(release)


def named(cases: Sequence[CoordinatorCase], name: str) -> CoordinatorCase:
    (found,) = (case for case in cases if case.name == name)
    return found


def test_what_follows_is_that_of_the_coordinator(tmp_path: Path) -> None:
    # F1000, F1005 to F1008: all groups of a partition wait; ids since the record have old states.
    torn = named(GROUP_CASES, "torn-commit")
    for release, consequence in (("4.4", Consequence.WAIT), ("3.9", Consequence.EMPTY)):
        found = load(tmp_path, CONSUMER_OFFSETS, torn, release)
        assert found is not None
        assert (found.consequence, found.waiting) == (consequence, len({"g", "h"}))
    ids = load(tmp_path, TRANSACTION_STATE, named(TRANSACTION_CASES, "torn"), "4.4")
    assert ids is not None
    assert (ids.consequence, ids.waiting) == (Consequence.PARTIAL, len({"b", "c"}))
    share = load(tmp_path, SHARE_GROUP_STATE, named(SHARE_CASES, "torn"), "4.4")
    assert share is not None
    assert (share.consequence, share.waiting) == (Consequence.WAIT, 1)


def test_settings_of_3_9_choose_the_coordinator_of_groups(tmp_path: Path) -> None:
    # F1005.
    case = named(GROUP_CASES, "classic-then-member")
    rules = CoordinatorRules.of("3.9", has_new_groups=True)
    directory = tmp_path / f"{CONSUMER_OFFSETS}-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(b"".join(case.batches()))
    (log,) = find_partitions([str(tmp_path)])
    found = coordinator_load(log, rules)
    assert found is not None
    assert found.offset == 1


def test_records_beyond_the_end_do_not_count(tmp_path: Path) -> None:
    # F1000: what the recovery of the log cuts off is not replayed.
    case = CoordinatorCase("torn-end", [commit("g"), *named(GROUP_CASES, "torn-commit").records])
    directory = tmp_path / f"{CONSUMER_OFFSETS}-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(b"".join(case.batches()))
    (log,) = find_partitions([str(tmp_path)])
    rules = CoordinatorRules.of("4.4")
    loads = [coordinator_load(log, rules, end) for end in (2, 3)]
    assert [load and load.loads for load in loads] == [True, False]


@pytest.mark.parametrize(
    ("position", "stops"),
    [
        pytest.param(18, None, id="checksum"),
        pytest.param(61, 0, id="length of the first record"),
        pytest.param(60, 0, id="number of records"),
    ],
)
@pytest.mark.parametrize("topic", [CONSUMER_OFFSETS, TRANSACTION_STATE])
def test_damage_is_read_as_a_coordinator_reads_it(
    topic: str, position: int, stops: int | None, tmp_path: Path
) -> None:
    # F1376: brokers of 4.4.0 and 3.9.2 did not load such partitions, or did not notice.
    case = CASES[topic][0]
    assert case.stops("4.4") is None
    data = bytearray(b"".join(case.batches()))
    data[position] ^= 4
    directory = tmp_path / f"{topic}-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(data)
    (log,) = find_partitions([str(tmp_path)])
    found = coordinator_load(log, CoordinatorRules.of("4.4"), 100)
    assert found is not None
    assert (found.loads, found.offset) == (stops is None, stops)
    unjudged = coordinator_load(log, CoordinatorRules.of("4.4"))
    assert unjudged is not None
    assert unjudged.damage
