"""What a server says about the groups and transactional ids that it serves."""

from pathlib import Path

import pytest

from kafkalog.server.groups.stored_groups import stored_groups
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.testing import LogDirectory


def test_commits_that_are_missing_are_named_when_groups_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F940
    made = LogDirectory(tmp_path / "logs")
    made.commit_offsets("billing", {("orders", 0): 3})
    path = Path(made.write())
    stored_groups([str(path)], ServedCluster([str(path)]).logs, None)
    assert "commits of groups" not in caplog.text
    (path / "__consumer_offsets-0" / f"{0:020d}.log").write_bytes(b"")
    stored_groups([str(path)], ServedCluster([str(path)]).logs, None)
    assert "commits of groups: 1 offset is missing: 1 of __consumer_offsets-0" in caplog.text


def test_records_of_coordinators_that_are_missing_are_named_when_ids_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F940
    made = LogDirectory(tmp_path / "logs")
    made.commit_offsets("billing", {("orders", 0): 3})
    path = Path(made.write())
    assert ServedCluster([str(path)]).transactional_ids == {}
    assert "transactional ids" not in caplog.text
    (path / "replication-offset-checkpoint").write_text("0\n1\n__transaction_state 3 5\n")
    assert ServedCluster([str(path)]).transactional_ids == {}
    assert "transactional ids: 5 offsets are missing: 5 of __transaction_state-3" in caplog.text
