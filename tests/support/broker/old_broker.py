"""A real broker with ZooKeeper, of releases 0.10.2 to 3.9, on loopback, with log directories and a
ZooKeeper that it finds there."""

import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.broker.class_paths import class_path
from tests.support.broker.java_tools import QUICK_START, end, run_tool
from tests.support.free_ports import free_ports

_HOST = "127.0.0.1"
_STARTED = r"started \(kafka\.server\.KafkaServer\)"
_START_TIMEOUT_SECONDS = 60
_POLL_SECONDS = 0.1
# It was made for Java 8, and looks into what Java 17 keeps to itself.
OPEN = (
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.nio", "sun.nio.ch")),
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "jdk.internal.ref")),
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
)
OLD_LOGGING = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %m (%c)%n
"""


class OldBroker:
    """A running broker; `log_file` is what it says."""

    def __init__(self, port: int, log_file: Path, jars: str, kafka_version: str | None) -> None:
        self.address = f"{_HOST}:{port}"
        self.log_file = log_file
        self._jars = jars
        self._kafka_version = kafka_version
        self._process: subprocess.Popen[bytes] | None = None

    def belongs_to(self, process: subprocess.Popen[bytes]) -> None:
        """Note its process."""
        self._process = process

    def kill(self) -> None:
        """Kill its process, so that its session ends by itself."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def run(self, main_class: str, *arguments: str) -> str:
        """Run one of its tools; return what that printed."""
        given = ["--bootstrap-server", self.address, *arguments]
        options = (*QUICK_START, *OPEN, "-Duser.timezone=UTC")
        output = run_tool(
            *(main_class, given),
            jars=self._jars,
            kafka_version=self._kafka_version,
            java_options=options,
        )
        return output.stdout.decode()

    def described(self, group: str) -> dict[tuple[str, int], int]:
        """The offsets that its ConsumerGroupCommand prints for a group, by topic and partition."""
        arguments = ("--new-consumer", "--describe", "--group", group)
        said = self.run("kafka.admin.ConsumerGroupCommand", *arguments)
        lines = (line.split() for line in said.splitlines())
        return {
            (line[0], int(line[1])): int(line[2])
            for line in lines
            if len(line) > 2 and line[1].isdecimal()
        }

    def wait_for(self, pattern: str) -> None:
        """Wait until the broker has said something that the pattern is found in."""
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        while not re.search(pattern, self.log_file.read_text(errors="replace")):
            assert time.monotonic() < deadline, f"the broker does not say {pattern!r}"
            time.sleep(_POLL_SECONDS)


@contextmanager
def old_broker(
    folder: Path,
    log_dir: Path,
    zookeeper_port: int,
    settings: Mapping[str, object],
    *,
    jars: str = "kafka010",
    kafka_version: str | None = None,
    protocol: str = "PLAINTEXT",
) -> Iterator[OldBroker]:
    """Broker 0 of a cluster, with its files in `folder`; gone at the end."""
    (port,) = free_ports(1)
    given = {
        "broker.id": 0,
        "listeners": f"{protocol}://{_HOST}:{port}",
        "log.dirs": log_dir,
        "zookeeper.connect": f"{_HOST}:{zookeeper_port}",
        "log.retention.ms": -1,
        **settings,
    }
    folder.mkdir()
    (folder / "log4j.properties").write_text(OLD_LOGGING)
    (folder / "server.properties").write_text("".join(f"{k}={v}\n" for k, v in given.items()))
    command = ["java", "-Xmx256m", *OPEN, f"-Dlog4j.configuration=file:{folder}/log4j.properties"]
    command += [
        "-cp",
        class_path(jars, kafka_version),
        "kafka.Kafka",
        str(folder / "server.properties"),
    ]
    broker = OldBroker(port, folder / "broker.log", jars, kafka_version)
    with broker.log_file.open("ab") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    broker.belongs_to(process)
    try:
        broker.wait_for(_STARTED)
        yield broker
    finally:
        end(process)
