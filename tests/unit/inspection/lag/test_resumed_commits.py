"""Where consumers continue whose commit is beyond the end of its leader epoch: F794 and F943.

What is expected is what clients did with a broker 4.4.0 that had such a commit: 16 records, epoch 0
up to offset 12 and epoch 2 after it, and a commit of offset 14 with epoch 0. Java's consumer went
back to 12, and got two records again.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from kafkalog.inspection.lag.lag_columns import lag_logs, with_accounts
from kafkalog.inspection.lag.resumed_commits import with_resumes
from tests.support.logs.commit_logs import write_topic
from tests.support.logs.log_dirs import add_meta_properties

NOW_MS = 1_700_000_000_000


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    add_meta_properties(tmp_path)
    write_topic(tmp_path, "orders", [NOW_MS - 1000 + offset for offset in range(16)])
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n2 12\n")
    return tmp_path


def resumed(
    log_dir: Path, *commits: tuple[int | None, int | None], is_now: bool = True
) -> list[tuple[int | None, int | None]]:
    log = lag_logs([str(log_dir / "orders-0")])[0]
    offsets, epochs = zip(*commits, strict=True)
    rows = pa.table(
        {
            "committed_offset": pa.array(offsets, pa.int64()),
            "leader_epoch": pa.array(epochs, pa.int32()),
        }
    )
    accounts = with_accounts(rows, log, read_committed=False, now_ms=NOW_MS)
    of_now = log if is_now else None
    found = with_resumes(accounts, of_now, read_committed=False, now_ms=NOW_MS)
    columns = (found[name].to_pylist() for name in ("resumes_at", "records_again"))
    return list(zip(*columns, strict=True))


def test_a_commit_beyond_the_end_of_its_epoch_comes_again_from_there(log_dir: Path) -> None:
    assert resumed(log_dir, (14, 0), (16, 0), (10, 0)) == [(12, 2), (12, 4), (None, None)]


def test_a_commit_at_the_end_of_its_epoch_or_in_the_last_one_counts(log_dir: Path) -> None:
    assert resumed(log_dir, (12, 0), (14, 2), (16, 2)) == [(None, None)] * 3


def test_an_epoch_that_the_leader_skipped_ended_where_the_next_one_begins(log_dir: Path) -> None:
    # F790: epoch 1 had no record here; the leader answers with epoch 0 and its end.
    assert resumed(log_dir, (14, 1), (10, 1)) == [(12, 2), (12, -2)]


def test_commits_without_an_epoch_are_not_checked(log_dir: Path) -> None:
    assert resumed(log_dir, (14, None), (None, None)) == [(None, None)] * 2


def test_of_a_past_time_and_without_epochs_nothing_is_known(log_dir: Path) -> None:
    assert resumed(log_dir, (14, 0), is_now=False) == [(None, None)]
    (log_dir / "orders-0" / "leader-epoch-checkpoint").unlink()
    assert resumed(log_dir, (14, 0)) == [(None, None)]
