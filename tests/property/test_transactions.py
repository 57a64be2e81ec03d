"""Generated logs of transactions: what is read as committed is what a plain replay of the events
says, whatever part of the log a task sees, and damage never makes an aborted record a row."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptDataError
from kafkalog.format.transaction_marker import ABORT, COMMIT
from tests.support.logs.committed_reads import committed_options, committed_rows
from tests.support.logs.damageable_logs import SampleLog

START_MS = 1_700_000_000_000
PRODUCERS = (11, 12, 13)


@dataclass
class Replay:
    """The log as it is written, and what a reader has to make of it."""

    log: SampleLog = field(default_factory=lambda: SampleLog(START_MS))
    committed: set[int] = field(default_factory=set)
    open: dict[int, list[int]] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)

    def data(self, producer: int, count: int) -> None:
        offsets = range(self.log.next_offset, self.log.next_offset + count)
        epoch = self.epochs.get(producer, 0)
        self.log.add(count, producer, in_transaction=True, producer_epoch=epoch)
        self.open.setdefault(producer, []).extend(offsets)

    def plain(self, count: int) -> None:
        self.committed |= set(range(self.log.next_offset, self.log.next_offset + count))
        self.log.add(count)

    def end(self, producer: int, kind: int, *, bump: bool) -> None:
        self.epochs[producer] = self.epochs.get(producer, 0) + bump
        self.log.end(producer, kind, producer_epoch=self.epochs[producer])
        offsets = self.open.pop(producer, [])
        if kind == COMMIT:
            self.committed |= set(offsets)

    @property
    def expected(self) -> list[int]:
        """The committed offsets below the first of an open transaction."""
        firsts = [offsets[0] for offsets in self.open.values()]
        stable = min([self.log.next_offset, *firsts])
        return sorted(offset for offset in self.committed if offset < stable)


producers = st.sampled_from(PRODUCERS)
events = st.lists(
    st.one_of(
        st.tuples(st.just("data"), producers, st.integers(1, 3)),
        st.tuples(st.just("plain"), st.integers(1, 3)),
        st.tuples(st.just("end"), producers, st.sampled_from([ABORT, COMMIT]), st.booleans()),
        st.tuples(st.just("roll")),
    ),
    min_size=1,
    max_size=40,
)


def replayed(plan: list[tuple[object, ...]]) -> Replay:
    replay = Replay()
    for name, *arguments in plan:
        if name == "roll":
            if replay.log.batches and replay.log.batches[-1].segment != replay.log.next_offset:
                replay.log.roll()
        elif name == "end":
            producer, kind, bump = arguments
            replay.end(int(str(producer)), int(str(kind)), bump=bool(bump))
        elif name == "data":
            replay.data(*(int(str(argument)) for argument in arguments))
        else:
            replay.plain(int(str(arguments[0])))
    if not replay.log.batches:
        replay.plain(1)
    return replay


@pytest.fixture(scope="module")
def folders() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _written(replay: Replay, folders: Path) -> Path:
    partition = Path(tempfile.mkdtemp(dir=folders)) / "topic-0"
    replay.log.write(partition, 4096)
    return partition


def _offsets(partition: Path, pieces: int = 1, **options: str) -> list[int]:
    rows = committed_rows(
        committed_options([partition], **options), pieces=pieces, columns=("offset",)
    )
    return [offset for (offset,) in rows]


@given(
    plan=events,
    pieces=st.integers(1, 4),
    removed=st.sets(st.sampled_from(["txnindex", "snapshot"])),
)
def test_committed_records_are_those_of_a_plain_replay(
    plan: list[tuple[object, ...]], pieces: int, removed: set[str], folders: Path
) -> None:
    # F210 to F214; T15: epochs go up with markers, and producers interleave; T16, T17, T18.
    replay = replayed(plan)
    partition = _written(replay, folders)
    for kind in removed:
        for path in partition.glob(f"*.{kind}"):
            path.unlink()
    assert _offsets(partition, pieces) == replay.expected


@given(plan=events, data=st.data())
def test_damage_never_makes_an_aborted_or_open_record_a_row(
    plan: list[tuple[object, ...]], data: st.DataObject, folders: Path
) -> None:
    # F212. Nothing covers a batch's base offset (T2): rows would be the same at other offsets.
    replay = replayed(plan)
    partition = _written(replay, folders)
    batch = data.draw(st.sampled_from(replay.log.batches))
    at = data.draw(st.integers(8, len(batch.data) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    path = partition / f"{batch.segment:020d}.log"
    content = bytearray(path.read_bytes())
    content[batch.position + at] ^= bit
    path.write_bytes(content)
    if data.draw(st.booleans()):
        for index in partition.glob("*.txnindex"):
            index.unlink()
    read = _offsets(partition, mode="DROPMALFORMED")
    assert set(read) <= replay.committed
    assert len(read) == len(set(read))


@given(plan=events, data=st.data())
def test_failfast_reads_all_or_says_what_is_wrong(
    plan: list[tuple[object, ...]], data: st.DataObject, folders: Path
) -> None:
    # F212: no flipped bit that a checksum covers is passed over in silence.
    replay = replayed(plan)
    partition = _written(replay, folders)
    batch = data.draw(st.sampled_from(replay.log.batches))
    at = data.draw(st.integers(17, len(batch.data) - 1))
    path = partition / f"{batch.segment:020d}.log"
    content = bytearray(path.read_bytes())
    content[batch.position + at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    try:
        read = _offsets(partition)
    except CorruptDataError:
        return
    assert read == replay.expected


# A bit of the base offset, of the length, of the magic byte, and the sign of the last offset's
# delta: by its headers alone the log ends before that batch.
@pytest.mark.parametrize(("at", "bit"), [(3, 0), (8, 7), (16, 2), (23, 7)])
def test_a_damaged_header_at_the_end_of_a_log_is_reported_or_filled_by_a_replica(
    at: int, bit: int, folders: Path
) -> None:
    # F212, F214.
    replay = replayed([("data", 11, 2), ("end", 11, COMMIT, False), ("plain", 1)])
    sound, damaged = (_written(replay, folders) for _ in range(2))
    path = damaged / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[replay.log.batches[-1].position + at] ^= 1 << bit
    path.write_bytes(content)
    with pytest.raises(CorruptDataError):
        _offsets(damaged)
    assert _offsets(damaged, mode="DROPMALFORMED") == replay.expected[:-1]
    for broker, partition in enumerate([damaged, sound]):
        (partition.parent / "meta.properties").write_text(f"version=0\nbroker.id={broker}\n")
    both = committed_options([damaged.parent, sound.parent])
    assert [offset for (offset,) in committed_rows(both, columns=("offset",))] == replay.expected
