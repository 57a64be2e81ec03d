"""What ConsumerOffsetChecker of Kafka 0.10 printed of a cluster."""

from pathlib import Path


def checked_offsets(golden: Path) -> dict[tuple[str, str, int], int]:
    """What ConsumerOffsetChecker printed: by group, topic and partition."""
    found = {}
    for path in golden.rglob("offset_checker_*.txt"):
        for line in path.read_text().splitlines()[1:]:
            group, topic, partition, offset, *_ = line.split()
            found[group, topic, int(partition)] = int(offset)
    return found
