"""One real ZooKeeper server on loopback, and its own shell as the client."""

import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.broker.class_paths import class_path
from tests.support.broker.java_tools import QUICK_START, end, run_tool
from tests.support.free_ports import free_ports

_HOST = "127.0.0.1"
_JARS = "zookeeper"
_SERVER = "org.apache.zookeeper.server.ZooKeeperServerMain"
_SHELL = "org.apache.zookeeper.ZooKeeperMain"
_START_TIMEOUT_SECONDS = 60
_POLL_SECONDS = 0.05
# A server may end a session that is silent for two ticks.
_TICK_MS = 200
_KILLED_TIMEOUT_MS = 1000
_PERMISSIONS = {"r": 1, "w": 2, "c": 4, "d": 8, "a": 16}


class ListedZnode(NamedTuple):
    """What the shell prints of a znode; times to the second."""

    data: str
    stat: Mapping[str, str]
    acl: tuple[tuple[int, str, str], ...]


class ZookeeperServer:
    """A running server and the port that its clients use."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._where = f"{_HOST}:{port}"

    def run(self, commands: Sequence[str]) -> list[str]:
        """Give the shell some commands in one session; the lines that it printed."""
        lines = "\n".join([*commands, "quit"]) + "\n"
        arguments = ["-waitforconnection", "-server", self._where]
        options = (*QUICK_START, "-Duser.timezone=UTC")
        output = run_tool(_SHELL, arguments, jars=_JARS, java_options=options, stdin=lines.encode())
        text = output.stdout.decode("utf-8")
        return [line for line in text.splitlines() if not line.startswith(("WATCHER", "WatchedE"))]

    def kill_session(self, command: str, done: str) -> None:
        """Kill a shell once it has said `done` to a command, and wait until the server has ended
        its session."""
        arguments = ["-waitforconnection", "-timeout", str(_KILLED_TIMEOUT_MS)]
        arguments += ["-server", self._where]
        process = subprocess.Popen(
            ["java", *QUICK_START, "-cp", class_path(_JARS), _SHELL, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(f"{command}\n")
            process.stdin.flush()
            assert any(done in line for line in process.stdout)
        finally:
            process.kill()
            process.communicate()
        time.sleep((_KILLED_TIMEOUT_MS + 4 * _TICK_MS) / 1000)

    def is_leader(self) -> bool:
        """Whether it leads its ensemble."""
        return "Mode: leader" in _answer(self.port, b"srvr")

    def listing(self) -> dict[str, ListedZnode]:
        """All znodes, by one session of the shell that names them and another that shows them."""
        paths = [line for line in self.run(["ls -R /"]) if line.startswith("/")]
        asked = [command for path in paths for command in _shown(path)]
        blocks = "\n".join(self.run(asked)).split("cZxid = ")[1:]
        return {path: _listed(block) for path, block in zip(paths, blocks, strict=True)}


def _shown(path: str) -> tuple[str, ...]:
    return f"stat {path}", f"get {path}", f"getAcl {path}"


def _listed(block: str) -> ListedZnode:
    lines = f"cZxid = {block}".splitlines()
    stat = dict(line.split(" = ", 1) for line in lines[:11])
    data, *acl = lines[11:]
    entries = re.findall(r"'([^,]*),'(.*)\n: (\w+)", "\n".join(acl))
    bits = [(sum(_PERMISSIONS[letter] for letter in perms), *who) for *who, perms in entries]
    return ListedZnode(data, stat, tuple(bits))


@contextmanager
def zookeeper_server(folder: Path, properties: Mapping[str, str]) -> Iterator[ZookeeperServer]:
    """A server whose dataDir is `folder`/data, with Java's system properties; gone at the end."""
    (port,) = free_ports(1)
    write_settings(folder, port)
    with running(folder, properties, port):
        yield ZookeeperServer(port)


def write_settings(folder: Path, port: int, *lines: str) -> None:
    """The settings of a server whose files are in `folder`, with some of an ensemble's."""
    folder.mkdir(exist_ok=True)
    text = f"dataDir={folder / 'data'}\nclientPort={port}\nclientPortAddress={_HOST}\n"
    text += f"tickTime={_TICK_MS}\n4lw.commands.whitelist=ruok,srvr\nadmin.enableServer=false\n"
    (folder / "zoo.cfg").write_text(text + "".join(f"{line}\n" for line in lines))


@contextmanager
def running(
    folder: Path, properties: Mapping[str, str], port: int, *, main_class: str = _SERVER
) -> Iterator[None]:
    """A server with the settings in its folder, which serves when this begins and has ended when it
    ends."""
    options = [f"-Dzookeeper.{name}={value}" for name, value in properties.items()]
    command = ["java", *QUICK_START, *options, "-Dzookeeper.preAllocSize=64"]
    command += ["-cp", class_path(_JARS), main_class, str(folder / "zoo.cfg")]
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        _wait_until_it_serves(process, port, folder / "server.log")
        yield
    finally:
        end(process)


def _answer(port: int, word: bytes) -> str:
    """What a server says to one of its words of four letters."""
    with socket.create_connection((_HOST, port), timeout=1) as connection:
        connection.sendall(word)
        with connection.makefile("rb") as said:
            return said.read().decode()


def _wait_until_it_serves(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if _answer(port, b"ruok") == "imok":
                return
        except OSError:
            time.sleep(_POLL_SECONDS)
    said = log.read_text(errors="replace")[-2000:]
    raise AssertionError(f"ZooKeeper does not serve, status {process.poll()}:\n{said}")
