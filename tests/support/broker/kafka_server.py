"""One real Kafka node on loopback, started and stopped as a process of its own."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.broker.class_paths import class_path
from tests.support.broker.consumed_rows import FORMATTER_PROPERTIES, ConsumedRow, parse_rows
from tests.support.broker.java_tools import (
    QUICK_START,
    SHORT_LIFE,
    ToolOutput,
    end,
    run_tool,
    server_command,
)
from tests.support.free_ports import free_ports

CLUSTER_ID = "a2Fma2Fsb2ctdGVzdHMtMQ"
NODE_ID = 1
PRODUCED_NULL = "<null>"
_HOST = "127.0.0.1"
_START_TIMEOUT_SECONDS = 60
_CONSUMER_TIMEOUT_MS = 15_000
_LAST_RECORD_TIMEOUT_MS = 8_000
_POLL_SECONDS = 0.05
_STARTED = "Kafka Server started"
_SHOWN_CHARACTERS = 3000
_FOREVER_MS = 2**63 - 1


_SETTINGS = {
    "num.partitions": 1,
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "log.retention.ms": -1,
    "log.message.timestamp.before.max.ms": _FOREVER_MS,
    "log.message.timestamp.after.max.ms": _FOREVER_MS,
    "log.index.size.max.bytes": 65536,
    "log.cleaner.backoff.ms": 500,
}


class ServerError(RuntimeError):
    """A node that did not start or did not answer, with the end of its log."""


class KafkaServer:
    """A combined broker and controller; a context manager that starts it and stops it.

    `work_dir` keeps its settings, its log and the cluster's metadata, so that a second start
    with the same `work_dir` and `log_dir` continues the cluster. `log_dir` is where partitions
    go, by default a directory in `work_dir`; one that exists must belong to the cluster
    `cluster_id` and to node 1. Partitions of which the metadata knows nothing are useless there:
    the broker renames their directories to `-stray`. `settings` are further ones, or others.
    `kafka_version` is another release than 4.4.0, `java_options` are those of a server that lives
    for seconds.
    Without a `port` for clients each start takes a free one.
    """

    def __init__(
        self,
        work_dir: Path,
        log_dir: Path | None = None,
        *,
        cluster_id: str = CLUSTER_ID,
        node_id: int = NODE_ID,
        settings: Mapping[str, object] = MappingProxyType({}),
        kafka_version: str | None = None,
        port: int | None = None,
        java_options: Sequence[str] = SHORT_LIFE,
    ) -> None:
        self._java_options = java_options
        self._kafka_version = kafka_version
        self.work_dir = work_dir.resolve()
        self.log_dir = log_dir.resolve() if log_dir else self.work_dir / "log"
        self.log_file = self.work_dir / "server.log"
        self.cluster_id = cluster_id
        self._node_id = node_id
        self._port = port
        self._settings = {**_SETTINGS, **settings}
        self.bootstrap = ""
        self._metadata_dir = self.work_dir / "metadata"
        self._settings_file = self.work_dir / "server.properties"
        self._log_position = 0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> KafkaServer:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the node and return when it serves. Raises ServerError when it does not."""
        if self._process is not None:
            raise ServerError("this server runs already")
        self.work_dir.mkdir(parents=True, exist_ok=True)
        port = self._write_settings()
        self._format_storage()
        self._log_position = self.log_file.stat().st_size if self.log_file.exists() else 0
        try:
            self._process = self._launch()
            self._wait_until_it_serves(self._process, port)
        except BaseException:
            self.stop()
            raise

    def _launch(self) -> subprocess.Popen[bytes]:
        logging, jars = (
            self.work_dir / "log4j2.properties",
            class_path("broker", self._kafka_version),
        )
        main, options = ("kafka.Kafka", self._settings_file), ("-Xmx512m", *self._java_options)
        command = server_command(jars, logging, *main, java_options=options)
        with self.log_file.open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.work_dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """The node's process. Raises ServerError when it does not run."""
        if self._process is None:
            raise ServerError("this server does not run")
        return self._process.pid

    def stop(self) -> None:
        """Stop the node, gracefully if it can; nothing of it is left running."""
        process, self._process = self._process, None
        if process is None:
            return
        end(process)

    def log_text(self) -> str:
        """What the node has logged since its last start."""
        with self.log_file.open("rb") as log:
            log.seek(self._log_position)
            return log.read().decode("utf-8", errors="replace")

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic. Raises KafkaException, also where it exists."""
        topic = NewTopic(name, partitions, 1, config=dict(configs or {}))
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([topic])[name].result(_START_TIMEOUT_SECONDS)

    def consume(
        self, topic: str, count: int, isolation: str = "read_uncommitted"
    ) -> list[ConsumedRow]:
        """The first `count` records of all partitions; in order within each of them.

        Raises ServerError where the consumer finds fewer, and ToolError where it fails.
        """
        rows, said = self._consume(
            topic, isolation, _CONSUMER_TIMEOUT_MS, ["--max-messages", str(count)]
        )
        if len(rows) != count:
            raise ServerError(f"{topic}: {count} records wanted, {len(rows)} received:\n{said}")
        return rows

    def consume_all(self, topic: str, isolation: str = "read_uncommitted") -> list[ConsumedRow]:
        """All records there are, until none has come for some seconds; in order likewise.

        Raises ServerError where the consumer counts otherwise than what it printed.
        """
        rows, said = self._consume(topic, isolation, _LAST_RECORD_TIMEOUT_MS, [])
        if f"Processed a total of {len(rows)} messages" not in said:
            raise ServerError(f"{topic}: {len(rows)} records received:\n{said}")
        return rows

    def _consume(
        self, topic: str, isolation: str, timeout_ms: int, limits: Sequence[str]
    ) -> tuple[list[ConsumedRow], str]:
        """Rows, and the end of what the consumer said."""
        arguments = ["--topic", topic, "--from-beginning", *limits]
        arguments += ["--isolation-level", isolation]
        arguments += ["--timeout-ms", str(timeout_ms)]
        arguments += ["--command-property", "enable.auto.commit=false"]
        for setting in FORMATTER_PROPERTIES:
            arguments += ["--formatter-property", setting]
        output = self.run_client("consumer.ConsoleConsumer", arguments)
        said = output.stderr.decode("utf-8", errors="replace")[-_SHOWN_CHARACTERS:]
        return parse_rows(output.stdout), said

    def end_offset(self, topic: str, partition: int) -> int:
        """The offset that the partition's next record will have."""
        return self.end_offsets(topic)[partition]

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return the offsets of all partitions of the topic, by partition."""
        return self.offsets(topic, "latest")

    def offsets(self, topic: str, time: str) -> dict[int, int]:
        """What GetOffsetShell answers for `time`, earliest or latest, by partition."""
        output = self.run_client("GetOffsetShell", ["--topic-partitions", topic, "--time", time])
        fields = (line.split(":") for line in output.stdout.decode("utf-8").splitlines())
        return {int(partition): int(offset) for _, partition, offset in fields}

    def produce_lines(self, topic: str, lines: bytes, compression: str) -> None:
        """Produce a record of each line: headers, key and value, with tabs between.

        Headers are `name:value` with commas between; `PRODUCED_NULL` in place of any value, of
        the key or of all headers is null.
        """
        arguments = ["--topic", topic, "--compression-codec", compression]
        for setting in ("parse.key=true", "parse.headers=true", f"null.marker={PRODUCED_NULL}"):
            arguments += ["--reader-property", setting]
        self.run_client("ConsoleProducer", arguments, stdin=lines)

    def run_client(self, tool: str, arguments: Sequence[str], stdin: bytes = b"") -> ToolOutput:
        """Run a class of org.apache.kafka.tools against this server. Raises ToolError."""
        where = ["--bootstrap-server", self.bootstrap]
        return run_tool(f"org.apache.kafka.tools.{tool}", [*where, *arguments], stdin=stdin)

    def _write_settings(self) -> int:
        """Write server.properties with free ports; the port for clients."""
        port, controller_port = free_ports(2)
        port = self._port or port
        self.bootstrap = f"{_HOST}:{port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": self._node_id,
            "controller.quorum.voters": f"{self._node_id}@{_HOST}:{controller_port}",
            "listeners": f"PLAINTEXT://{_HOST}:{port},CONTROLLER://{_HOST}:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.log_dir,
            "metadata.log.dir": self._metadata_dir,
            **self._settings,
        }
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        self._settings_file.write_text(text, encoding="utf-8")
        return port

    def _format_storage(self) -> None:
        directories = (self.log_dir, self._metadata_dir)
        if all((directory / "meta.properties").exists() for directory in directories):
            return
        arguments = ["format", "--cluster-id", self.cluster_id, "--ignore-formatted"]
        arguments += ["--config", str(self._settings_file)]
        run_tool(
            *("kafka.tools.StorageTool", arguments),
            jars="broker",
            kafka_version=self._kafka_version,
            java_options=QUICK_START,
        )

    def _wait_until_it_serves(self, process: subprocess.Popen[bytes], port: int) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise ServerError(f"Kafka ended with status {process.returncode}:\n{self._tail()}")
            if _STARTED in self.log_text() and _accepts_connections(port):
                return
            time.sleep(_POLL_SECONDS)
        waited = f"Kafka did not serve within {_START_TIMEOUT_SECONDS} s"
        raise ServerError(f"{waited}:\n{self._tail()}")

    def _tail(self) -> str:
        return self.log_text()[-_SHOWN_CHARACTERS:]


def _accepts_connections(port: int) -> bool:
    try:
        with socket.create_connection((_HOST, port), timeout=1):
            return True
    except OSError:
        return False
