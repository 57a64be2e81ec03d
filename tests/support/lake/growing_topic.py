"""A topic to which tests add records between runs."""

from pathlib import Path
from random import Random

from kafkalog.testing import LogDirectory


class GrowingTopic:
    """Topic orders with two partitions in a log directory."""

    def __init__(self, log_dir: Path) -> None:
        self._directory = LogDirectory(log_dir)
        self._topic = self._directory.topic("orders", partitions=2)
        self._values = Random(7)
        self._sent = 0

    def send(self, count: int, size: int = 10) -> None:
        """Add records to both partitions, whose values do not compress."""
        for partition in (0, 1):
            values = [(None, self._values.randbytes(size)) for _ in range(count)]
            self._topic.records(values, partition=partition)
        self._sent += count
        self._directory.write()

    def offsets(self) -> list[tuple[int, int]]:
        """Partition and offset of each record that was added, in order."""
        return [(key, offset) for key in (0, 1) for offset in range(self._sent)]
