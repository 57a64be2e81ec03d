"""Cluster ids. Rules: F443, F469."""

from __future__ import annotations

from kafkalog.coordination.zookeeper.cluster_ids import (
    is_own,
    started_cluster_id,
)

REAL = "9HNcCqYpTZmkPoFfSKvi0A"  # of the fixture kafka010


def test_it_is_generated_once() -> None:
    # F443
    assert started_cluster_id(None, REAL) == REAL
    assert started_cluster_id(REAL, "another") == REAL


def test_ids_that_are_known_have_to_agree() -> None:
    # F469
    assert is_own(REAL, REAL) and is_own(REAL, None) and is_own(None, None)
    assert not is_own(REAL, "another") and not is_own(None, REAL)
