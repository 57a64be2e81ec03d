"""What tests read of a restored cluster, of the set restore44 in tests/golden/README.md."""

import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.format.batch_header import BatchHeader, read_header
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.metadata.copies import metadata_copies
from kafkalog.inspection.metadata.replay import image_at
from kafkalog.messages.internal_records import read_internal_record
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog, topic_id
from kafkalog.storage.reading.log_reader import LogReader
from tests.support.messages.avro_orders import ORDERS, write_schemas

Unpacked = Callable[[str], Path]
Row = Mapping[str, Any]

AS_OF_MS = 1795636120000
AS_OF = "2026-11-25T19:48:40Z"
# Clients' clocks, linger, and what was under way.
MARGIN_S = 2.0
CONTINUOUS = ("transfers", "events", "plain", "derived", "doomed", "new-early")
MARKED = re.compile(r"(\.lock|\.kafka_cleanshutdown|-stray|-delete|\.deleted|\.cleaned|\.swap)$")
CHUNK = 1024 * 1024


class Restored(NamedTuple):
    """A restored directory, its manifest, and what was given."""

    directory: Path
    manifest: dict[str, Any]
    inputs: list[Path]

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def logs(self) -> dict[tuple[str, int], PartitionLog]:
        return logs_of([self.data])

    def image(self) -> MetadataImage:
        return image_at(metadata_copies([str(self.data)])[0].log).image


def logs_of(paths: list[Path]) -> dict[tuple[str, int], PartitionLog]:
    found = find_partitions(list(map(str, paths)), strict=False)
    return {(log.topic or "", log.partition or 0): log for log in found}


def restore(inputs: list[Path], *arguments: str) -> Result:
    return CliRunner().invoke(kafkalog, ["restore", *map(str, inputs), *arguments])


def records(log: PartitionLog) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of each record but control records."""
    for header, batch in batches(log):
        if not header.is_control:
            for record in batch:
                yield record.offset, record.key, record.value


def batches(log: PartitionLog) -> Iterator[tuple[BatchHeader, list[Any]]]:
    reader = LogReader(log)
    for chunk in reader.chunks(reader.start_offset, CHUNK):
        listed = list(chunk.records())
        for data in chunk.batches():
            header = read_header(data, 0)
            inside = [
                each for each in listed if header.base_offset <= each.offset <= header.last_offset
            ]
            yield header, inside


def group_records(log: PartitionLog) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, group and value of each record of a log of `__consumer_offsets`; none of others."""
    if log.topic != CONSUMER_OFFSETS:
        return
    for _, key, value in records(log):
        read = read_internal_record(CONSUMER_OFFSETS, key, value)
        if read.key is not None and read.value is not None:
            group: str = read.key["group" if "group" in read.key else "groupId"]
            yield read.name or "", group, read.value


def group_epochs(paths: list[Path]) -> dict[str, int]:
    """The highest generation or epoch of each group."""
    found: dict[str, int] = {}
    for path in paths:
        for log in logs_of([path]).values():
            for name, group, value in group_records(log):
                if name in ("GroupMetadata", "ConsumerGroupMetadata", "ShareGroupMetadata"):
                    epoch = value["generation" if name == "GroupMetadata" else "epoch"]
                    found[group] = max(found.get(group, epoch), epoch)
    return found


def end_of(log: PartitionLog) -> int:
    return LogReader(log).end_offset()


def old_ends(inputs: list[Path], ids: Mapping[tuple[str, int], str | None]) -> dict[Any, int]:
    """The last end of each partition in any copy."""
    found: dict[Any, int] = defaultdict(int)
    for path in inputs:
        for key, log in logs_of([path]).items():
            if key in ids and topic_id(log) == ids[key]:
                found[key] = max(found[key], end_of(log))
    return found


def copied(inputs: list[Path], directory: Path) -> list[Path]:
    """Copies of the disks, to be changed."""
    copies = [directory / f"copy{number}" / "data" for number in range(len(inputs))]
    for path, copy in zip(inputs, copies, strict=True):
        shutil.copytree(path, copy)
    return copies


def disk_with_orders(inputs: Sequence[Path], directory: Path) -> Path:
    """A copy of one disk with `_schemas`, and with orders in Avro at the end of topic `plain`."""
    disk = directory / "disk"
    shutil.copytree(inputs[0], disk)
    write_schemas(disk)
    (log,) = (log for log in find_partitions([str(disk)], strict=False) if log.name == "plain-0")
    *_, (header, last) = batches(log)
    end, time_ms = header.last_offset + 1, last[-1].timestamp_ms
    records = [Record(end + n, time_ms, 0, b"k", each) for n, each in enumerate(ORDERS)]
    batch = write_batch(records, BatchFields(leader_epoch=header.leader_epoch))
    with open(log.segments[-1].path, "ab") as file:
        file.write(batch)
    return disk


def orders_in(directory: Path) -> list[bytes | None]:
    """The orders in topic `plain` of a directory that was restored."""
    log = logs_of([directory / "data"])["plain", 0]
    return [value for _, _, value in records(log) if value in ORDERS]
