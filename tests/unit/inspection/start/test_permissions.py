"""Which files a broker's user cannot use, and which file systems. Rules: docs/format.md F965 and
F1193."""

import os
from pathlib import Path

import pytest

from kafkalog.errors import OptionError
from kafkalog.inspection.start.node_directories import NodeDirectory
from kafkalog.inspection.start.permissions import (
    BrokerUser,
    full_notice,
    most_frequent_owner,
    refused_files,
)

OTHER = BrokerUser(4_000_000, frozenset((4_000_000,)), "kafka")


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    partition = tmp_path / "d1" / "orders-0"
    partition.mkdir(parents=True)
    logs = [f"{offset:020d}.{kind}" for offset in (0, 5) for kind in ("log", "index")]
    for name in (*logs, "partition.metadata"):
        (partition / name).touch()
    for path in (partition.parent, partition):
        path.chmod(0o777)
    for path in partition.iterdir():
        path.chmod(0o666)
    return partition.parent


def refused(log_dir: Path, user: BrokerUser = OTHER) -> list[str]:
    found = refused_files(NodeDirectory.read(str(log_dir)), user)
    return [os.path.relpath(reason.file, log_dir) for reason in found]


@pytest.mark.parametrize(
    ("path", "mode", "is_refused"),
    [
        # Fixtures 18a, 18c and 18d; a log file is opened for writing.
        ("orders-0", 0o700, True),
        ("orders-0", 0o777, False),
        (f"orders-0/{0:020d}.log", 0o600, True),
        (f"orders-0/{0:020d}.log", 0o644, True),
        (f"orders-0/{0:020d}.index", 0o644, False),
        (f"orders-0/{0:020d}.index", 0o600, True),
        # What a broker of 4.4.0 did: it grows the indexes of the last segment.
        (f"orders-0/{5:020d}.index", 0o644, True),
        ("orders-0", 0o755, True),
        (".", 0o755, True),
    ],
)
def test_owner_and_mode_decide(path: str, mode: int, is_refused: bool, log_dir: Path) -> None:
    # F965.
    (log_dir / path).chmod(mode)
    assert refused(log_dir) == [path] * is_refused


def test_the_superuser_may_use_every_file(log_dir: Path) -> None:
    # F965.
    (log_dir / "orders-0").chmod(0)
    assert refused(log_dir, BrokerUser(0, frozenset((0,)), "root")) == []
    (log_dir / "orders-0").chmod(0o700)


def test_the_broker_is_run_by_the_owner_of_most_files_by_default(log_dir: Path) -> None:
    # F965.
    user = most_frequent_owner([str(log_dir)])
    assert user is not None
    assert user.uid == os.getuid()


def test_an_unknown_name_is_refused_and_an_unknown_number_is_not() -> None:
    assert BrokerUser.named("4000000").uid == 4_000_000
    with pytest.raises(OptionError):
        BrokerUser.named("no-such-user")


def test_the_metadata_ends_the_process_and_other_files_do_not_matter(log_dir: Path) -> None:
    # F965, as a broker of 4.4.0 did.
    folder = log_dir / "__cluster_metadata-0"
    folder.mkdir()
    (folder / "quorum-state").touch()
    (log_dir / ".kafka_cleanshutdown").touch()
    for path, mode in ((folder, 0o777), (folder / "quorum-state", 0o600)):
        path.chmod(mode)
    (log_dir / ".kafka_cleanshutdown").chmod(0o600)
    (found,) = refused_files(NodeDirectory.read(str(log_dir)), OTHER)
    assert found.file == str(folder / "quorum-state")
    assert found.ends_process


@pytest.mark.parametrize(
    ("blocks", "inodes", "is_full"), [(1, 1, False), (0, 1, True), (1, 0, True)]
)
def test_a_full_file_system_takes_the_directory_offline_after_an_unclean_stop(
    blocks: int, inodes: int, is_full: bool, log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # F1193: a broker of 4.4.0 on a full tmpfs; after a clean stop it served.
    status = os.statvfs_result((4096, 4096, 100, blocks, blocks, 100, inodes, inodes, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: status)
    assert refused(log_dir) == (["."] if is_full else [])
    (log_dir / ".kafka_cleanshutdown").touch()
    assert refused(log_dir) == []
    notice = full_notice(NodeDirectory.read(str(log_dir)), OTHER)
    assert (notice is not None) == is_full
