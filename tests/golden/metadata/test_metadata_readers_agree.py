"""The compiled reader of `__cluster_metadata` gives the entries, and ends at the damage, that the
reader of batches does. Rules: docs/format.md F764, F765."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.inspection.metadata.metadata_log import MetadataEntry, MetadataLog
from tests.support.messages.metadata_images import opened

Unpacked = Callable[[str], Path]


def read(log: MetadataLog, offset: int) -> tuple[list[MetadataEntry], str | None]:
    found: list[MetadataEntry] = []
    try:
        for entry in log.entries(offset):
            found.append(entry)
    except CorruptDataError as error:
        return found, str(error)
    return found, None


def by_batches(log: MetadataLog, offset: int) -> tuple[list[MetadataEntry], str | None]:
    found: list[MetadataEntry] = []
    try:
        for batch in log.batches(offset):
            found += [entry for entry in batch.entries() if entry.offset >= offset]
    except CorruptDataError as error:
        return found, str(error)
    return found, None


def changed(folder: Path, seed: int) -> Iterator[None]:
    chance = random.Random(seed)
    for path in sorted(folder.glob("*.log")):
        data = bytearray(path.read_bytes())
        for _ in range(chance.choice((0, 1, 2))):
            place = chance.randrange(len(data))
            kind = chance.randrange(4)
            if kind == 0:
                data[place] = chance.randrange(256)
            elif kind == 1:
                data[place:place] = chance.randbytes(chance.randrange(1, 80))
            elif kind == 2:
                del data[place : place + chance.randrange(1, 200)]
            else:
                del data[place:]
        path.write_bytes(data or b"\0")
        yield


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(6, 40))]
)
def test_damage_ends_both_at_the_same_place(unpacked: Unpacked, seed: int, tmp_path: Path) -> None:
    logs = unpacked("kafka44.logs") / "log-dirs"
    name = "__cluster_metadata-0"
    shutil.copytree(logs / name, tmp_path / name)
    if seed:
        list(changed(tmp_path / name, seed))
    for offset in (0, 218, 333, 700, 707):
        assert read(opened(tmp_path), offset) == by_batches(opened(tmp_path), offset)
