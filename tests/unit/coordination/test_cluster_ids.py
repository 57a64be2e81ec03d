"""Cluster ids. Rules: F442, F443, F469."""

from __future__ import annotations

import pytest

from kafkalog.coordination.cluster_ids import (
    is_own,
    started_cluster_id,
)
from kafkalog.format.log_dir_files import is_cluster_id

REAL = "9HNcCqYpTZmkPoFfSKvi0A"  # of the fixture kafka010


@pytest.mark.parametrize(
    ("text", "expected"),
    [(REAL, True), ("a-_Z9", True), (f"{REAL}x", False), ("", False), ("a+b", False), ("é", False)],
)
def test_it_is_base64_for_urls_of_22_characters_at_most(text: str, expected: bool) -> None:
    # F442
    assert is_cluster_id(text) is expected


def test_it_is_generated_once() -> None:
    # F443
    assert started_cluster_id(None, REAL) == REAL
    assert started_cluster_id(REAL, "another") == REAL


def test_ids_that_are_known_have_to_agree() -> None:
    # F469
    assert is_own(REAL, REAL) and is_own(REAL, None) and is_own(None, None)
    assert not is_own(REAL, "another") and not is_own(None, REAL)
