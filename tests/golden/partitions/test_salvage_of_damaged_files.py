"""Salvage of damaged copies of a real log: nothing sound is lost, and no broker would stumble."""

from pathlib import Path
from typing import Any

import pytest

from kafkalog.inspection.partitions.salvage import SalvageSettings, salvage_partition
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog
from tests.support.logs.both_readers import by_reference
from tests.support.repository import Unpack

SETTINGS = SalvageSettings(now_ms=1_790_000_000_000, index_interval_bytes=1024)


def sound_records(log: PartitionLog) -> list[tuple[Any, ...]]:
    """All records of sound batches by the plain reader, but for leader epochs, for a wrong one is
    mended, and for where they lie in the files."""
    found = []
    for segment in log.segments:
        data = Path(segment.path).read_bytes()
        _, rows = by_reference(data, segment.base_offset, segment.next_base_offset)
        found += [row[:6] + row[7:-1] for row in rows]
    return found


def salvaged(log: PartitionLog, directory: Path) -> tuple[dict[str, Any], PartitionLog]:
    row = dict(salvage_partition(log, str(directory / log.name), SETTINGS))
    (written,) = find_partitions([str(directory)])
    return row, written


def variants(unclean: Path) -> list[Path]:
    return sorted(path / "log-dirs" for path in (unclean / "variants").iterdir())


def test_no_sound_record_of_a_damaged_copy_is_lost(unpacked: Unpack, tmp_path: Path) -> None:
    # F180 to F183; T3, T4, T33.
    checked = 0
    for log_dir in variants(unpacked("unclean.logs")):
        name = log_dir.parent.name
        (log,) = find_partitions([str(log_dir)])
        row, written = salvaged(log, tmp_path / name)
        expected = sound_records(log)
        # A leader epoch that was wrong is mended, which no record shows.
        assert sound_records(written) == expected, name
        assert row["kept_bytes"] + row["lost_bytes"] == sum(each.size for each in log.segments)
        assert row["kept_bytes"] == sum(each.size for each in written.segments)
        lost = sum(each["length"] for each in row["lost_ranges"])
        assert lost == row["lost_bytes"], name
        assert (row["broker_starts"], row["start_error"]) == (True, None), name
        assert row["mended_epochs"] == (1 if name == "bitflip-leader-epoch" else 0)
        checked += len(expected)
    assert checked > 90_000


@pytest.mark.parametrize(
    ("variant", "lost"),
    [
        # By hand from the descriptions: offsets of the batch at 7979 are 2721 to 2781, of the last
        # one 2782 to 2799; segment 463 has 463 to 915.
        ("as-killed", []),
        ("zero-hole", [(2721, 2781), (2721, 2781)]),
        ("garbage-block-inserted", [(None, None)]),
        ("truncated-last-batch", [(2782, None)]),
        ("bitflip-payload-active", [(2721, 2781)]),
        ("middle-segment-missing", [(463, 915)]),
        ("offsets-go-back", [(None, None)]),
    ],
)
def test_the_offsets_that_are_lost_are_reported(
    variant: str, lost: list[tuple[int | None, int | None]], unpacked: Unpack, tmp_path: Path
) -> None:
    # F182.
    (log,) = find_partitions([str(unpacked("unclean.logs") / "variants" / variant / "log-dirs")])
    row, _ = salvaged(log, tmp_path)
    told = [(each.get("first_offset"), each.get("last_offset")) for each in row["lost_ranges"]]
    assert told == lost


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk", "kafka010", "kafka08", "tiered43"])
def test_a_sound_log_is_copied_to_the_byte(name: str, unpacked: Unpack, tmp_path: Path) -> None:
    # F180, F181.
    log_dirs = [path.parent for path in unpacked(f"{name}.logs").rglob("*offset-checkpoint")]
    copied = 0
    for log_dir in sorted(set(log_dirs)):
        for log in find_partitions([str(log_dir)]):
            if log.topic == "__cluster_metadata":
                continue
            directory = tmp_path / log_dir.name / log.name
            row = salvage_partition(log, str(directory), SETTINGS)
            assert (row["lost_bytes"], row["broker_starts"]) == (0, True), log.path
            for segment in log.segments:
                source = Path(segment.path)
                assert (directory / source.name).read_bytes() == source.read_bytes(), source
                copied += segment.size
    assert copied > 100_000
