"""Cluster ids. Rule: F469."""

from kafkalog.coordination.zookeeper.ensemble_clusters import is_own

REAL = "9HNcCqYpTZmkPoFfSKvi0A"  # of the fixture kafka010


def test_ids_that_are_known_have_to_agree() -> None:
    # F469
    assert is_own(REAL, REAL) and is_own(REAL, None) and is_own(None, None)
    assert not is_own(REAL, "another") and not is_own(None, REAL)
