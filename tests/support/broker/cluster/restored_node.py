"""A node that `kafkalog restore` has written, started as it is."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.support.broker.class_paths import class_path
from tests.support.broker.java_tools import end, server_command
from tests.support.free_ports import free_ports

_STARTED = "Kafka Server started"
_START_SECONDS = 90
# Retention and expiry look at once, and what producers wrote long ago is known for ever.
_QUICK = {
    "log.retention.check.interval.ms": 1000,
    "log.initial.task.delay.ms": 500,
    "offsets.retention.check.interval.ms": 2000,
    "producer.id.expiration.ms": 2**31 - 1,
    "group.initial.rebalance.delay.ms": 0,
}
# Warnings of these are about what is on the disk.
_OF_LOGS = re.compile(
    r"^(WARN|ERROR|FATAL) .*\(\S*(LogManager|UnifiedLog|LogLoader|LogSegment\w*|LocalLog|"
    r"ProducerStateManager|LogCleaner\w*|LeaderEpochFileCache|TransactionIndex|OffsetIndex|"
    r"TimeIndex|GroupCoordinator\w*|CoordinatorRuntime|CoordinatorLoaderImpl|"
    r"TransactionStateManager|TransactionCoordinator|ShareCoordinator\w*|MetadataLoader|"
    r"BrokerMetadataPublisher|KafkaRaftLog|LoggingFaultHandler)\)$",
    re.MULTILINE,
)


def ports() -> tuple[int, int]:
    """Two free ports, of the broker and the controller."""
    broker, controller = free_ports(2)
    return broker, controller


class RestoredNode:
    """A context manager that starts a copy of a node's directory, and stops it."""

    def __init__(
        self,
        restored: Path,
        home: Path,
        settings: Mapping[str, object] = MappingProxyType({}),
        kafka_version: str | None = None,
    ) -> None:
        self.home = home
        self._kafka_version = kafka_version
        shutil.copytree(restored, home)
        text = (home / "server.properties").read_text()
        added = "".join(f"{name}={value}\n" for name, value in {**_QUICK, **settings}.items())
        (home / "server.properties").write_text(f"{text}{added}")
        found = re.search(r"^listeners=PLAINTEXT://([^,]+)", text, re.MULTILINE)
        assert found is not None
        self.bootstrap = found[1]
        self._log = home / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def said(self) -> str:
        """All that the node has logged."""
        return self._log.read_text(errors="replace")

    @property
    def warnings(self) -> list[str]:
        """The warnings and errors about logs, metadata, groups and transactions."""
        return [found[0] for found in _OF_LOGS.finditer(self.said)]

    def __enter__(self) -> RestoredNode:
        logging, jars = self.home / "log4j2.properties", class_path("broker", self._kafka_version)
        command = server_command(jars, logging, "kafka.Kafka", "server.properties")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + _START_SECONDS
        while _STARTED not in self.said:
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"the node did not start:\n{self.said[-3000:]}")
            time.sleep(0.1)
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the node, if it runs."""
        if self._process is not None:
            end(self._process)
            self._process = None
