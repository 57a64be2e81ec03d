"""What a server says about the log directories that it serves."""

from pathlib import Path

from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.testing import LogDirectory


def test_commits_that_are_missing_are_named_before_a_consumer_asks(tmp_path: Path) -> None:
    # F940
    made = LogDirectory(tmp_path / "logs")
    made.commit_offsets("billing", {("orders", 0): 3})
    path = Path(made.write())
    assert len(list(ServedCluster([str(path)]).contents())) == 1
    (path / "__consumer_offsets-0" / f"{0:020d}.log").write_bytes(b"")
    *_, last = ServedCluster([str(path)]).contents()
    assert last.startswith("commits of groups: 1 offset is missing: 1 of __consumer_offsets-0")
