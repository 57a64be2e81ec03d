"""Replicas with other records at the same offsets. Rule: F927."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.logs.replica_facts import replica_differences, replica_sets
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from tests.support.replicas.diverged_replicas import write_replica


def one(offset: int, word: str, *, leader_epoch: int = 0) -> bytes:
    value = f"{word} {offset}".encode()
    return write_batch(
        [Record(offset, 1_700_000_000_000 + offset, 0, b"k", value)],
        BatchFields(leader_epoch=leader_epoch),
    )


def written(word: str, offsets: Iterable[int], *, leader_epoch: int = 0) -> list[bytes]:
    return [one(offset, word, leader_epoch=leader_epoch) for offset in offsets]


def paths(home: Path) -> list[str]:
    return [str(path) for path in sorted(home.iterdir())]


def logs(home: Path) -> list[PartitionLog]:
    return find_partitions(paths(home))


def differences(home: Path) -> list[tuple[str, int, int]]:
    return [
        (Path(found.path).parts[-3], found.offset, found.position)
        for found in replica_differences(logs(home))
    ]


@pytest.fixture
def made_again(tmp_path: Path) -> Path:
    """A topic without ids that was made again while broker 1 was down: both are of epoch 0, and the
    old one is longer."""
    write_replica(tmp_path, 1, written("old", range(20)))
    write_replica(tmp_path, 2, written("new", range(5)))
    return tmp_path


def test_other_bytes_under_the_same_epoch_are_a_divergence(made_again: Path) -> None:
    assert differences(made_again) == [("2", 0, 0)]
    (found,) = replica_sets(logs(made_again))
    # Nothing of the one fills what is damaged in the other.
    assert found.best.log_dir.broker_id == 1
    assert found.agreed_ends == (20, 0)
    assert [other.end_offset for other in found.filling(found.best.segments[0]).others] == [0]


def test_other_batches_of_several_records_differ_as_well(tmp_path: Path) -> None:
    write_replica(tmp_path, 1, written("old", range(20)))
    records = [Record(offset, 1, 0, None, b"new") for offset in range(10)]
    write_replica(tmp_path, 2, [write_batch(records, BatchFields())])
    assert differences(tmp_path) == [("2", 0, 0)]


def test_the_first_difference_is_found_in_an_earlier_segment(tmp_path: Path) -> None:
    shared = written("same", range(12))
    write_replica(tmp_path, 1, [*shared, *written("one", range(12, 40))])
    # Broker 2 rolled at 10 and at 20: in its last segment nothing is the same.
    log = write_replica(tmp_path, 2, shared[:10])
    for base, batches in (
        (10, [*shared[10:], *written("two", range(12, 20))]),
        (20, written("two", range(20, 30))),
    ):
        (log.parent / f"{base:020d}.log").write_bytes(b"".join(batches))
    size = sum(map(len, shared[10:]))
    assert differences(tmp_path) == [("2", 12, size)]


def test_a_replica_that_ends_long_before_the_best_ones_last_segment_is_compared(
    tmp_path: Path,
) -> None:
    log = write_replica(tmp_path, 1, written("old", range(20)))
    (log.parent / f"{20:020d}.log").write_bytes(b"".join(written("old", range(20, 40))))
    write_replica(tmp_path, 2, written("new", range(5)))
    assert differences(tmp_path) == [("2", 0, 0)]


def damaged(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


def cleaned(offset: int, end: int, word: str) -> bytes:
    """A batch of which the cleaner has removed the records after the first."""
    batch = bytearray(one(offset, word))
    batch[23:27] = (end - offset).to_bytes(4, "big")
    return bytes(batch)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(written("a", range(9)), written("a", range(9)), id="the same"),
        pytest.param(written("a", range(9)), written("a", range(4)), id="one is behind"),
        pytest.param(written("a", range(9)), written("a", range(4, 9)), id="one began later"),
        pytest.param(
            written("a", range(9)),
            [damaged(each) for each in written("b", range(9))],
            id="damage does not count",
        ),
        pytest.param(
            written("a", range(9)),
            [*written("a", range(5)), (7).to_bytes(8, "big") + one(5, "a")[8:]],
            id="a damaged base offset",
        ),
        pytest.param([], written("a", range(9)), id="one is empty"),
        pytest.param([cleaned(0, 8, "a")], [cleaned(0, 8, "b")], id="cleaned apart"),
    ],
)
def test_what_is_no_difference(
    first: Sequence[bytes], second: Sequence[bytes], tmp_path: Path
) -> None:
    write_replica(tmp_path, 1, first)
    write_replica(tmp_path, 2, second)
    assert differences(tmp_path) == []


def test_what_a_cleaner_has_been_over_is_not_compared(tmp_path: Path) -> None:
    write_replica(tmp_path, 1, written("a", range(9)))
    write_replica(tmp_path, 2, written("b", range(6)))
    assert differences(tmp_path) == [("2", 0, 0)]
    (tmp_path / "2" / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 6\n")
    assert differences(tmp_path) == []


def test_what_leader_epochs_explain_is_not_said_again(tmp_path: Path) -> None:
    shared = written("same", range(4))
    write_replica(tmp_path, 1, [*shared, *written("one", range(4, 9))])
    later = written("two", range(4, 6), leader_epoch=5)
    write_replica(tmp_path, 2, [*shared, *later], epochs=[(0, 0), (5, 4)])
    assert differences(tmp_path) == []


def run(home: Path, *command: str) -> tuple[int, str]:
    result = CliRunner().invoke(kafkalog, [*command, *paths(home)])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("command", "code"),
    [("check", 1), ("ls", 0), ("replicas", 0), ("get-offsets", 0), ("find", 0), ("export", 0)],
)
def test_every_command_says_it(
    command: str, code: int, made_again: Path, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    target = tmp_path.parent / f"{tmp_path.name}-tables"
    options = {
        "find": ["--key", "k"],
        "export": ["--format", "parquet", "--output-dir", str(target)],
    }.get(command, [])
    found, out = run(made_again, command, *options)
    assert found == code
    said = out + caplog.text
    assert f"from offset 0 on other records than {made_again}/1/orders-0" in said


def test_check_does_not_call_diverged_replicas_sound(made_again: Path) -> None:
    assert run(made_again, "check")[1].splitlines()[-1].startswith("DIVERGED: 1 replica")


def test_the_report_finds_in_replicas_what_check_finds(made_again: Path, tmp_path: Path) -> None:
    target = tmp_path.parent / f"{tmp_path.name}-page"
    code, out = run(made_again, "report", "--output-dir", str(target), "--fail-on-findings")
    assert code == 1
    words = f"from offset 0 on other records than {made_again}/1/orders-0"
    assert f"diverged: {made_again}/2/orders-0/00000000000000000000.log: {words}" in out
    page = (target / "report.html").read_text()
    assert "<b>diverged</b> at position 0: " in page and words in page


def test_find_says_which_records_consumers_do_not_see(made_again: Path) -> None:
    _, out = run(made_again, "find", "--key", "k")
    other = [line for line in out.splitlines() if f"{made_again}/2/" in line and "orders " in line]
    assert len(other) == 5 and all("not in the best replica" in line for line in other)
