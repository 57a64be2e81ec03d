"""Which partitions are in tiered storage, and which of their segments count."""

import json
import random
import shutil
from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError, LogDirError, UnsupportedFormatError
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.format.side_files.tiered_manifest import read_chunk_sizes, read_tiered_manifest
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.log_dir.tiered_storage import TieredSegment, counting_segments
from kafkalog.storage.partition_log import topic_id
from tests.support.logs.log_dirs import add_partition
from tests.support.logs.tiered_objects import TOPIC_ID, chunk_sizes, segment_id, store_segment
from tests.support.repository import EXAMPLES, Unpack

STORE = "kafka-tiered-storage"
NAMES = ["tier.tiered-0", "tier.tiered-1", "tier.tiered.tx-0"]


def segments_of(*paths: Path) -> dict[str, list[tuple[int | None, int | None]]]:
    return {
        log.name: [(each.base_offset, each.next_base_offset) for each in log.segments]
        for log in find_partitions([str(path) for path in paths])
    }


def test_kafkas_own_layout_is_read(unpacked: Unpack) -> None:
    """F555."""
    assert segments_of(unpacked("tiered43.tiered") / STORE) == {
        "tier.tiered-0": [(0, 20), (20, 134), (134, None)],
        "tier.tiered-1": [(0, 387), (387, None)],
        "tier.tiered.tx-0": [(0, 12), (12, 312), (312, 324), (324, 611), (611, None)],
    }


def test_tiered_storage_is_found_one_level_below_but_not_beside_log_directories(
    unpacked: Unpack, tmp_path: Path
) -> None:
    """F555: the plug-in makes a folder in the directory that a broker is given."""
    tier = tmp_path / "tier"
    shutil.copytree(unpacked("tiered43.tiered") / STORE, tier / STORE)
    assert segments_of(tier) == segments_of(tier / STORE)
    shutil.copytree(unpacked("tiered43.logs") / "log-dirs", tier / "log-dirs")
    with pytest.raises(LogDirError, match=r"did you mean .*log-dirs"):
        find_partitions([str(tier)])


def test_a_partition_in_tiered_storage_goes_on_on_the_disk(unpacked: Unpack) -> None:
    """F558: the segments on the disk are those behind what the broker has uploaded and deleted."""
    tiered, disk = unpacked("tiered43.tiered") / STORE, unpacked("tiered43.logs") / "log-dirs"
    found = segments_of(tiered, disk)
    assert {name: found[name] for name in NAMES} == {
        "tier.tiered-0": [(0, 20), (20, 134), (134, 331), (331, None)],
        "tier.tiered-1": [(0, 387), (387, 508), (508, None)],
        "tier.tiered.tx-0": [(0, 12), (12, 312), (312, 324), (324, 611), (611, 623), (623, None)],
    }
    assert found["tier.local-0"] == [(0, None)]


@pytest.mark.parametrize("below", ["", "tier.tiered-0-5wRXdQPWQii1gNevKFi4Ow"])
def test_the_topics_id_is_in_the_name(unpacked: Unpack, below: str) -> None:
    """F555."""
    log = find_partitions([str(unpacked("tiered43.tiered") / STORE / below)])[0]
    assert (log.name, topic_id(log)) == ("tier.tiered-0", "5wRXdQPWQii1gNevKFi4Ow")


@pytest.mark.parametrize("below", ["", f"t.x-{TOPIC_ID}", f"t.x-{TOPIC_ID}/3"])
def test_aivens_layout_is_read(tmp_path: Path, below: str) -> None:
    """F556."""
    store_segment(tmp_path, "t.x-3", 0, b"one", number=1)
    store_segment(tmp_path, "t.x-3", 70, b"two", number=2)
    (log,) = find_partitions([str(tmp_path / below)])
    assert (log.topic, log.partition, topic_id(log)) == ("t.x", 3, TOPIC_ID)
    assert segments_of(tmp_path / below) == {"t.x-3": [(0, 70), (70, None)]}


def test_a_directory_can_have_both(tmp_path: Path) -> None:
    """F556: a name as long as one with an id in it is a partition's if it ends in a number."""
    store_segment(tmp_path, "t-0", 0, b"one")
    add_partition(tmp_path, "a-topic-with-a-long-name-12", 5)
    assert segments_of(tmp_path) == {"a-topic-with-a-long-name-12": [(5, None)], "t-0": [(0, None)]}


@pytest.mark.parametrize("missing", [".rsm-manifest", ".log"])
def test_an_upload_that_is_not_complete_is_left_out(tmp_path: Path, missing: str) -> None:
    """F556."""
    store_segment(tmp_path, "t-0", 0, b"one", number=1)
    path = store_segment(tmp_path, "t-0", 70, b"two", number=2)
    path.with_suffix(missing).unlink()
    assert segments_of(tmp_path) == {"t-0": [(0, None)]}


def kept(*segments: tuple[int, int, int]) -> list[tuple[int, int]]:
    """Base offsets and last epochs of segments given by base offset, last epoch and size."""
    given = [TieredSegment(f"/{number}", *each) for number, each in enumerate(_shaped(segments))]
    random.Random(len(given)).shuffle(given)
    return [(each.base_offset, each.last_epoch) for each in counting_segments(given)]


def _shaped(segments: tuple[tuple[int, int, int], ...]) -> list[tuple[int, int, int]]:
    return [(base_offset, size, epoch) for base_offset, epoch, size in segments]


def test_segments_of_one_leader_follow_each_other() -> None:
    assert kept((0, 3, 9), (20, 3, 9), (134, 3, 9)) == [(0, 3), (20, 3), (134, 3)]


def test_of_an_upload_that_was_repeated_one_copy_counts() -> None:
    """F558."""
    assert kept((0, 0, 9), (50, 0, 7), (50, 0, 9), (90, 0, 9)) == [(0, 0), (50, 0), (90, 0)]


def test_a_later_leaders_segment_counts_from_where_it_begins() -> None:
    """F558: the first leader had 0 to 99 and 100 to 199, the second cut at 81 and has 60 to 160."""
    assert kept((0, 0, 9), (100, 0, 9), (60, 1, 9)) == [(0, 0), (60, 1)]


def test_a_segment_within_a_later_leaders_counts_nothing() -> None:
    """F558."""
    assert kept((0, 1, 9), (50, 0, 9), (161, 1, 9), (300, 2, 9)) == [(0, 1), (161, 1), (300, 2)]


def whole_names(*paths: Path) -> set[str]:
    return {log.name for log in find_partitions([str(path) for path in paths])}


def test_a_topic_that_was_created_again_is_another_in_tiered_storage(tmp_path: Path) -> None:
    """F558, F925."""
    store_segment(tmp_path, "t-0", 0, b"one")
    again = tmp_path / f"t-{segment_id(9)}"
    shutil.copytree(tmp_path / f"t-{TOPIC_ID}", again)
    assert whole_names(tmp_path) == {f"t@{TOPIC_ID}-0", f"t@{segment_id(9)}-0"}


def test_a_disk_with_a_topic_of_another_id_does_not_begin_in_tiered_storage(tmp_path: Path) -> None:
    """F558, F925."""
    store_segment(tmp_path / "store", "t-0", 0, b"one")
    partition = add_partition(tmp_path / "disk", "t-0", 10)
    (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {segment_id(9)}\n")
    names = whole_names(tmp_path / "store", tmp_path / "disk")
    assert names == {f"t@{TOPIC_ID}-0", f"t@{segment_id(9)}-0"}


def test_disks_of_several_brokers_are_asked_about(tmp_path: Path) -> None:
    """F558."""
    store_segment(tmp_path / "store", "t-0", 0, b"one")
    for disk in ("one", "two"):
        partition = add_partition(tmp_path / disk, "t-0", 10)
        (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    with pytest.raises(LogDirError, match="several brokers"):
        find_partitions([str(tmp_path / name) for name in ("store", "one", "two")])


# The words of the plug-in's own test of its manifest.
AS_WRITTEN = (
    '{"version":"1","chunkIndex":{"type":"fixed","originalChunkSize":100,"originalFileSize":1000,'
    '"transformedChunkSize":110,"finalTransformedChunkSize":110},"segmentIndexes":{"offset":'
    '{"position":0,"size":1},"timestamp":{"position":1,"size":1},"producerSnapshot":{"position":2,'
    '"size":1},"leaderEpoch":{"position":3,"size":1},"transaction":null},"compression":false,'
    '"remoteLogSegmentMetadata":{"remoteLogSegmentId":{"topicIdPartition":{"topicId":'
    '"lZ6vvmajTWKDBUTV6SQAtQ","topicPartition":{"topic":"topic1","partition":42}},"id":'
    '"adh9f8BMS4anaUnD8KWfWg"},"startOffset":0,"endOffset":1000,"maxTimestampMs":1000000000,'
    '"brokerId":2,"eventTimestampMs":2000000000,"segmentLeaderEpochs":{"0":100,"1":200,"2":300}}}'
)


def test_a_manifest_as_the_plug_in_writes_it() -> None:
    """F557."""
    read = read_tiered_manifest(AS_WRITTEN)
    assert (read.segment_bytes, read.chunk_bytes) == (1000, 100)
    assert read.stored_sizes == (110,) * 10
    assert (read.is_compressed, read.is_encrypted) == (False, False)
    assert read.leader_epochs == (EpochStart(0, 100), EpochStart(1, 200), EpochStart(2, 300))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 10_000,
        AS_WRITTEN.replace('"version":"1"', '"version":"2"'),
        AS_WRITTEN.replace('"originalChunkSize":100,', '"originalChunkSize":0,'),
        AS_WRITTEN.replace('"originalFileSize":1000', '"originalFileSize":99999999999999'),
        AS_WRITTEN.replace('"originalFileSize":1000', '"originalFileSize":1e400'),
        AS_WRITTEN.replace('"fixed"', '"variable"'),
        AS_WRITTEN.replace('"fixed"', '"another"'),
        AS_WRITTEN.replace('{"0":100,"1":200,"2":300}', "{}"),
        AS_WRITTEN.replace('{"0":100,"1":200,"2":300}', "null"),
    ],
)
def test_any_other_text_is_one_error(text: str) -> None:
    """F557."""
    with pytest.raises(CorruptDataError, match="manifest"):
        read_tiered_manifest(text)


COMPRESSED = AS_WRITTEN.replace('"compression":false', '"compression":true')
LARGE = COMPRESSED.replace('"originalFileSize":1000', '"originalFileSize":2147483647')
MOST = 128 * 1024 * 1024


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LARGE.replace('Size":100,', 'Size":2147483647,'), "chunks of 2147483647 bytes"),
        (LARGE.replace('Size":100,', f'Size":{MOST + 1},'), f"chunks of {MOST + 1} bytes"),
        (LARGE.replace('Size":100,', 'Size":2047,'), "1049089 chunks"),
        (COMPRESSED.replace('"transformedChunkSize":110', f'"transformedChunkSize":{2 * MOST}'),
         "a stored chunk"),
        (" " * 2**24 + AS_WRITTEN, "characters"),
    ],
    ids=lambda value: value[:30],
)  # fmt: skip
def test_a_manifest_that_asks_for_gigabytes_is_refused(text: str, said: str) -> None:
    """F557: 300 bytes made a reader allocate 2 GiB for a chunk."""
    with pytest.raises(CorruptDataError, match=said):
        read_tiered_manifest(text)


def test_so_many_sizes_of_chunks_are_refused() -> None:
    """F557."""
    with pytest.raises(CorruptDataError, match="1048577 chunks"):
        read_chunk_sizes((2**20 + 1).to_bytes(4, "big") + bytes(4) + b"\1" + bytes(2**20 + 4))


@pytest.mark.parametrize("chunk_bytes", [MOST, 2147483647])
def test_a_chunk_of_128_mib_or_of_a_whole_small_segment_is_read(chunk_bytes: int) -> None:
    """F557: a chunk is no larger than its segment."""
    text = COMPRESSED.replace('ChunkSize":100,', f'ChunkSize":{chunk_bytes},')
    assert read_tiered_manifest(text).stored_sizes == (110,)


@pytest.mark.parametrize("sizes", [[], [7], [5, 9], [1000, 1010, 1300, 1], [70000, 10**6, 0]])
def test_sizes_of_chunks(sizes: list[int]) -> None:
    """F557."""
    packed = chunk_sizes(sizes)
    assert read_chunk_sizes(packed) == tuple(sizes)
    for wrong in (packed[:-1], packed + b"\0"):
        with pytest.raises(CorruptDataError, match="manifest"):
            read_chunk_sizes(wrong)


def test_sizes_of_chunks_by_hand() -> None:
    """F557: the plug-in's example, a base of 1,000,000 and one byte for each but the last."""
    packed = bytes.fromhex("00000004 000f4240 01 00 0a 14 00000005")
    assert read_chunk_sizes(packed) == (1_000_000, 1_000_010, 1_000_020, 5)


SEGMENT = (EXAMPLES / "kafka-4.4/shop.codec-zstd-0/00000000000000000000.log").read_bytes()


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_segment_in_chunks_has_its_own_bytes(tmp_path: Path, is_compressed: bool) -> None:
    """F557."""
    path = store_segment(tmp_path, "t-0", 0, SEGMENT, is_compressed=is_compressed)
    with InputFile(str(path)) as file:
        assert file.size == len(SEGMENT)
        assert file.read(0, file.size) == SEGMENT
        for position, size in ((4095, 2), (100_000, 9000), (len(SEGMENT) - 5, 50), (0, 1)):
            assert file.read(position, size) == SEGMENT[position : position + size]


def test_a_damaged_chunk_is_an_error_with_its_place(tmp_path: Path) -> None:
    """F557."""
    path = store_segment(tmp_path, "t-0", 0, SEGMENT, is_compressed=True)
    stored = bytearray(path.read_bytes())
    stored[:8] = bytes(8)
    path.write_bytes(stored)
    with InputFile(str(path)) as file:
        with pytest.raises(CorruptDataError, match="chunk 0"):
            file.read(0, 10)
        assert file.read(4096, 10) == SEGMENT[4096:4106]


def test_a_file_of_another_size_than_its_chunks_is_an_error(tmp_path: Path) -> None:
    """F557."""
    path = store_segment(tmp_path, "t-0", 0, SEGMENT, is_compressed=True)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptDataError, match="the file has"):
        InputFile(str(path))


def test_an_encrypted_segment_is_refused(tmp_path: Path) -> None:
    """F557."""
    path = store_segment(tmp_path, "t-0", 0, SEGMENT)
    beside = path.with_suffix(".rsm-manifest")
    fields = json.loads(beside.read_text()) | {"encryption": {"dataKey": "x", "aad": "y"}}
    beside.write_text(json.dumps(fields))
    with pytest.raises(UnsupportedFormatError, match="encrypted"):
        InputFile(str(path))
