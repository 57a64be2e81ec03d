"""The offsets that Kafka's tools and the Admin client answered on a live broker."""

import re
from pathlib import Path

from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog

YEAR_2099 = 4070908800000


def partitions(logs: Path) -> dict[str, PartitionLog]:
    """All partitions of one or several log directories by name."""
    top = logs / "log-dirs"
    paths = [top] if any(top.glob("*-0")) else sorted(top.iterdir())
    return {log.name: log for log in find_partitions([str(path) for path in paths])}


def time_in_question(question: str, start_of_run: int) -> int | None:
    """The time that a question in admin.json asks for."""
    if question == "for_time_year_2099":
        return YEAR_2099
    if question == "for_time_0":
        return 0
    found = re.fullmatch(r"for_time_t0_plus_(\d+)", question)
    return start_of_run + int(found[1]) if found else None


def printed_offsets(golden: Path, time: int) -> dict[str, int]:
    """The offsets that the tool printed_offsets, by partition; those without an offset left out."""
    lines = (golden / "tools" / f"get_offsets_time{time}.txt").read_text().splitlines()
    fields = [line.rsplit(":", 2) for line in lines if line.count(":") == 2]
    return {
        f"{topic}-{partition}": int(offset) for topic, partition, offset in fields if offset != ""
    }
