"""What a sample says of a topic. Rule: F592."""

import random
from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.inspection.logs import savings as module
from kafkalog.inspection.logs.savings import savings
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import SegmentFile
from kafkalog.wire.compression import CompressionType
from tests.support.logs.samples import record
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import write_log


def segments(place: Path, batches: list[bytes]) -> tuple[SegmentFile, ...]:
    write_log(place, "orders-0", {0: batches})
    (log,) = find_partitions([str(place)])
    return tuple(log.segments)


def mixed_batches(count: int) -> list[bytes]:
    """Batches of which some compress well and some do not."""
    chance = random.Random(7)
    return [
        write_batch([record(offset, chance.randbytes(500) + b"x" * chance.randrange(1500))])
        for offset in range(count)
    ]


def test_an_estimate_from_a_sample_is_within_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_BYTES", 2_000)
    logs = segments(tmp_path, mixed_batches(400))
    whole = {each.change: each for each in savings(logs, 10**9, "orders")}
    assert {each.error_bytes for each in whole.values()} == {0}
    within = total = 0
    for seed in range(30):
        for each in savings(logs, 100_000, f"{seed}"):
            assert each.error_bytes
            assert each.sampled_bytes < each.size == whole[each.change].size
            total += 1
            true = whole[each.change].would_take
            within += abs(each.would_take - true) <= each.error_bytes
    # 19 of 20, by the rule; all changes of a seed share its sample.
    assert within / total > 0.8


def test_what_a_broker_does_not_touch_stays(tmp_path: Path, unpacked: Unpack) -> None:
    plain = [record(0, b"a" * 5_000)]
    zstd = write_batch(plain, BatchFields(compression=CompressionType.ZSTD))
    control = BatchFields(base_offset=1, is_control=True, is_transactional=True)
    marker = write_batch([record(1, b"a" * 5_000)], control)
    found = {each.change: each for each in savings(segments(tmp_path, [zstd, marker]), 1, "a")}
    assert found["compression.type=zstd"].would_take == len(zstd) + len(marker)
    assert found["compression.type=gzip"].would_take != len(zstd) + len(marker)
    (log,) = (
        log
        for log in find_partitions([str(next(unpacked("kafka010.logs").rglob("old.codec-none-0")))])
        if log.segments
    )
    for each in savings(log.segments, 1, "a"):
        assert each.would_take == each.size > 0


def test_a_codec_that_does_not_exist_and_an_unreadable_block_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = bytearray(write_batch([record(0, b"a" * 5_000)]))
    # Codec 5 in the attributes.
    batch[22] |= 5
    logs = segments(tmp_path, [bytes(batch)])
    assert {each.would_take for each in savings(logs, 1, "a")} <= {len(batch)}

    def unreadable(self: object, position: int, size: int) -> bytes:
        raise CorruptDataError("unreadable", "bytes", position=position)

    sound = segments(tmp_path / "sound", [write_batch([record(0, b"a" * 5_000)])])
    assert any(each.would_take < each.size for each in savings(sound, 1, "a"))
    monkeypatch.setattr("kafkalog.storage.files.files.InputFile.read", unreadable)
    assert all(each.would_take == each.size for each in savings(sound, 1, "a"))


def test_an_empty_topic_has_nothing_to_save(tmp_path: Path) -> None:
    assert savings(segments(tmp_path, []), 1, "a") == []
