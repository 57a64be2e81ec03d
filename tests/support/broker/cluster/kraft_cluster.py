"""A KRaft cluster on loopback, controllers and brokers being nodes of their own, which can be
stopped, killed and started again from other directories."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.broker.class_paths import class_path
from tests.support.broker.java_tools import (
    QUICK_START,
    SHORT_LIFE,
    ToolOutput,
    end,
    run_tool,
    server_command,
)
from tests.support.free_ports import free_ports

CLUSTER_ID = "a2Fma2Fsb2ctdGVzdHMtMg"
_HOST = "127.0.0.1"
_START_TIMEOUT_SECONDS = 90
_SETTINGS = {
    "offsets.topic.replication.factor": 2,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": 2,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "log.index.size.max.bytes": 65536,
    "log.cleaner.dedupe.buffer.size": 4_194_304,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
    "controller.quorum.election.timeout.ms": 2000,
    "controller.quorum.fetch.timeout.ms": 4000,
}


def new_directory_id() -> str:
    """An id for a directory, as Kafka has it."""
    return "A" + base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")[1:]


@dataclass
class Node:
    """A controller, a broker, or, with a port for clients, both; `metadata_dir` has its copy of the
    metadata."""

    node_id: int
    is_controller: bool
    port: int
    home: Path
    host: str = _HOST
    client_port: int | None = None
    metadata_dir: Path = field(init=False)
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.metadata_dir = self.home / "metadata"

    @property
    def data_dir(self) -> Path:
        """The log directory; a controller has none but that of the metadata."""
        return self.metadata_dir if self.is_controller else self.home / "data"

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def client_address(self) -> str | None:
        """Where a broker serves clients; None for a controller alone."""
        if not self.is_controller:
            return self.address
        return f"{self.host}:{self.client_port}" if self.client_port else None

    def move(self) -> None:
        """Give the node, which does not run, another name of its host and another port."""
        self.host = "localhost"
        (self.port,) = free_ports(1)

    @property
    def log(self) -> str:
        return (self.home / "server.log").read_text(errors="replace")


@dataclass
class KraftCluster:
    """Nodes 1 to `controllers` are controllers, and brokers too where they are combined, those from
    11 on brokers; `settings` are added to the configuration of all."""

    home: Path
    is_dynamic: bool
    controllers: int = 3
    brokers: int = 2
    is_combined: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    quorum: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = [*range(1, self.controllers + 1), *range(11, 11 + self.brokers)]
        for node_id, port in zip(ids, free_ports(len(ids)), strict=True):
            home = self.home / f"node-{node_id}"
            home.mkdir(parents=True)
            self.nodes[node_id] = Node(node_id, node_id < 11, port, home)
        if self.is_combined:
            for node, port in zip(self.nodes.values(), free_ports(len(ids)), strict=True):
                node.client_port = port
        self.elect(range(1, self.controllers + 1))
        self._format()

    @property
    def bootstrap(self) -> str:
        found = (each.client_address for each in self.nodes.values())
        return ",".join(each for each in found if each is not None)

    def elect(self, node_ids: Sequence[int]) -> None:
        """Set the voters in the configuration of all nodes, or the servers that know them."""
        nodes = [self.nodes[each] for each in node_ids]
        if self.is_dynamic:
            servers = ",".join(each.address for each in nodes)
            self.quorum = {"controller.quorum.bootstrap.servers": servers}
        else:
            voters = ",".join(f"{each.node_id}@{each.address}" for each in nodes)
            self.quorum = {"controller.quorum.voters": voters}

    def _format(self) -> None:
        controllers = [each for each in self.nodes.values() if each.is_controller]
        ids = {each.node_id: new_directory_id() for each in controllers}
        initial = ",".join(f"{c.node_id}@{c.address}:{ids[c.node_id]}" for c in controllers)
        for node in self.nodes.values():
            if self.is_dynamic:
                of_controllers = ("--initial-controllers", initial)
                self.format(
                    node, *(of_controllers if node.is_controller else ("--no-initial-controllers",))
                )
            else:
                self.format(node)

    def format(self, node: Node, *arguments: str) -> None:
        """Format the directories of a node with kafka-storage."""
        given = ["format", "--cluster-id", CLUSTER_ID, "--config", str(self._write(node))]
        run_tool(
            "kafka.tools.StorageTool", [*given, *arguments], jars="broker", java_options=QUICK_START
        )

    def _write(self, node: Node) -> Path:
        """Write server.properties."""
        listeners = {"controller": f"CONTROLLER://{node.address}"} if node.is_controller else {}
        if node.client_address is not None:
            listeners["broker"] = f"PLAINTEXT://{node.client_address}"
        settings = {
            "process.roles": ",".join(listeners),
            "node.id": node.node_id,
            "listeners": ",".join(listeners.values()),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": node.data_dir,
            "metadata.log.dir": node.metadata_dir,
            **_SETTINGS,
            **self.settings,
            **self.quorum,
        }
        path = node.home / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def start(self, *node_ids: int) -> None:
        """Start nodes, all if none are named, and return when they serve."""
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        for node in self.launch(*node_ids):
            while "Kafka Server started" not in node.log or not _accepts(node.port):
                if node.process is None or node.process.poll() is not None:
                    raise RuntimeError(f"node {node.node_id} ended:\n{node.log[-3000:]}")
                if time.monotonic() > deadline:
                    raise RuntimeError(f"node {node.node_id} does not serve:\n{node.log[-3000:]}")
                time.sleep(0.1)

    def launch(self, *node_ids: int) -> list[Node]:
        """Start nodes, all if none are named, and return them at once."""
        nodes = [self.nodes[each] for each in node_ids or self.nodes]
        for node in nodes:
            logging, main = node.home / "log4j2.properties", ("kafka.Kafka", self._write(node))
            command = server_command(
                class_path("broker"), logging, *main, java_options=("-Xmx192m", *SHORT_LIFE)
            )
            with (node.home / "server.log").open("wb") as log:
                node.process = subprocess.Popen(
                    ["nice", "-n", "10", *command],
                    cwd=node.home,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
        return nodes

    def stop(self, *node_ids: int, kill: bool = False) -> None:
        """Stop nodes, all if none are named, brokers first."""
        for node_id in node_ids or sorted(self.nodes, reverse=True):
            process, self.nodes[node_id].process = self.nodes[node_id].process, None
            if process is not None and kill:
                process.kill()
                process.wait()
            elif process is not None:
                end(process)

    def lose(self, *node_ids: int) -> None:
        """Remove all that nodes, which do not run, have on their disks."""
        for node_id in node_ids:
            for directory in (self.nodes[node_id].metadata_dir, self.nodes[node_id].data_dir):
                shutil.rmtree(directory, ignore_errors=True)

    def run(self, tool: str, *arguments: str, stdin: bytes = b"") -> ToolOutput:
        """Run one of Kafka's tools against the brokers. Raises ToolError."""
        given = ["--bootstrap-server", self.bootstrap, *arguments]
        package = "kafka.admin" if tool == "ConfigCommand" else "org.apache.kafka.tools"
        return run_tool(f"{package}.{tool}", given, stdin=stdin)


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection((_HOST, port), timeout=1):
            return True
    except OSError:
        return False


@contextmanager
def kraft_cluster(
    home: Path,
    *,
    is_dynamic: bool,
    controllers: int = 3,
    settings: Mapping[str, object] | None = None,
) -> Iterator[KraftCluster]:
    """Controllers and two brokers that run; none of them does at the end."""
    cluster = KraftCluster(home, is_dynamic, controllers, settings=settings or {})
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop(kill=True)
