"""Commits as records, compared with those that real brokers wrote."""

import pytest

from kafkalog.messages.commit_records import COMMIT_FORMS, GroupCommit, commit_batches
from tests.support.logs.plain_reader import read_ranges, read_segment_records
from tests.support.repository import Unpack

NOW_MS = 1_800_000_000_000
# As ConsumerOffsetChecker printed them; the times are those of fixture kafka08's own commits.
DUAL = ("o8.g-old-dual", "o8.codec-gzip", 0)
REAL = [
    GroupCommit(*DUAL, 97, 1795245765364),
    GroupCommit(*DUAL, 194, 1795245765394),
    GroupCommit(*DUAL, 291, 1795245765406),
    GroupCommit(*DUAL, 300, 1795245765411),
    GroupCommit("o8.g-old-kafka", "o8.codec-snappy", 0, 88, 1795245765520),
]


def batches(commits: list[GroupCommit], release: str, base_offset: int = 0) -> list[bytes]:
    form = COMMIT_FORMS[release]
    return list(
        commit_batches(commits, form, base_offset=base_offset, leader_epoch=7, now_ms=NOW_MS)
    )


def test_the_oldest_form_is_byte_for_byte_what_a_broker_wrote(unpacked: Unpack) -> None:
    # F480
    (log,) = unpacked("kafka08.logs").rglob(f"__consumer_offsets-1/{0:020d}.log")
    assert b"".join(batches(REAL, "0.8.2")) == log.read_bytes()


def test_version_1_is_what_a_broker_wrote_but_for_the_time_of_expiry(unpacked: Unpack) -> None:
    # F480: without a time of its own a commit expires by the broker's settings.
    (log,) = unpacked("kafka010.logs").rglob(f"__consumer_offsets-1/{0:020d}.log")
    data = log.read_bytes()
    real = read_segment_records(data, [part for part in read_ranges(data, 0) if part.header])[0]
    commit = GroupCommit("old.g-old-kafka", "old.codec-snappy", 0, 88, 1795244828202)
    (batch,) = batches([commit], "0.10")
    (written,) = read_segment_records(batch, read_ranges(batch, 0))
    assert real.value is not None and written.value is not None
    assert (written.key, written.value[:-8]) == (real.key, real.value[:-8])
    assert written.value[-8:] == b"\xff" * 8
    assert (written.timestamp_ms, written.timestamp_type) == (NOW_MS, real.timestamp_type)


@pytest.mark.parametrize(("release", "magic"), [("0.9", 0), ("0.10", 1), ("0.11", 2), ("2.1", 2)])
def test_offsets_go_on_and_batches_have_the_leaders_epoch(release: str, magic: int) -> None:
    # F480, F481
    many = [GroupCommit("group", "topic", number, 5, 6) for number in range(3000)]
    written = batches(many, release, base_offset=40)
    data = b"".join(written)
    ranges = read_ranges(data, 40)
    headers = [part.header for part in ranges if part.header]
    assert {header.magic for header in headers} == {magic}
    assert {header.leader_epoch for header in headers} == {7 if magic == 2 else -1}
    records = read_segment_records(data, ranges)
    assert [record.offset for record in records] == list(range(40, 3040))
    assert len(written) == (3 if magic == 2 else 3000)
    assert max(map(len, written)) < 100_000
