"""`kafkalog groups` where records about groups are missing: it denies no group."""

import shutil
from pathlib import Path

import pytest

from tests.support.golden.groups_command import Unpacked, log_dirs, run


@pytest.fixture(scope="module")
def without_commits(unpacked: Unpacked, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker's directory whose partitions of `__consumer_offsets` have lost their log files."""
    (logs,) = log_dirs(unpacked("kafka44.logs"))
    copy = tmp_path_factory.mktemp("lost") / "logs"
    shutil.copytree(logs, copy, ignore=shutil.ignore_patterns("shop.[!i]*"))
    for log in copy.glob("__consumer_offsets-*/*.log"):
        log.unlink()
    return copy


def ends_by_broker(log_dir: Path, topic: str) -> dict[str, int]:
    """Where the broker says that each partition with records ends."""
    lines = (log_dir / "replication-offset-checkpoint").read_text().splitlines()[2:]
    ends = (line.split() for line in lines)
    return {
        f"{name}-{number}": int(end) for name, number, end in ends if name == topic and end != "0"
    }


@pytest.mark.parametrize("table", ["--describe", "--lagging", "--list", "--state", "--members"])
def test_no_group_is_denied_while_the_records_about_groups_are_missing(
    without_commits: Path, table: str
) -> None:
    # F940
    ends = ends_by_broker(without_commits, "__consumer_offsets")
    code, out, err = run(str(without_commits), table)
    assert code == 3
    assert f"commits: {sum(ends.values())} offsets are missing: " in err
    for partition, end in ends.items():
        assert f"{partition}: offsets 0 to {end - 1} are missing: " in err
    assert "none of" not in err
    assert "no consumer group is known: what is here of __consumer_offsets has no record" in err
    assert "no group is known\n" not in out


def test_a_past_time_claims_nothing_either(without_commits: Path) -> None:
    # F940
    code, _, err = run(str(without_commits), "--lagging", "--as-of", "2100-01-01")
    assert (code, "so none of" in err) == (3, False)


def test_why_does_not_call_a_group_unknown_whose_records_may_be_missing(
    without_commits: Path,
) -> None:
    # F940: a group of the broker's answers
    code, _, err = run(str(without_commits), "--why", "shop.g-classic-stable")
    assert code == 3
    assert (
        "error: the records that are here say nothing of group shop.g-classic-stable, and " in err
    )


def test_share_groups_without_their_states_are_not_at_their_beginning(
    unpacked: Unpacked, tmp_path: Path
) -> None:
    # F940, F780
    (logs,) = log_dirs(unpacked("kafka44.logs"))
    copy = tmp_path / "logs"
    shutil.copytree(logs, copy, ignore=shutil.ignore_patterns("shop.[!s]*"))
    for log in copy.glob("__share_group_state-*/*.log"):
        log.write_bytes(b"")
    code, _, err = run(str(copy))
    ends = ends_by_broker(copy, "__share_group_state")
    assert (code, len(ends)) == (3, 2)
    assert f"share groups: {sum(ends.values())} offsets are missing" in err
