"""Iceberg's own sink in a worker of Kafka Connect, and the table that it writes."""

import subprocess
import time
from pathlib import Path

from pyiceberg.table import StaticTable

from tests.support.broker.class_paths import class_path
from tests.support.broker.java_tools import end, server_command
from tests.support.free_ports import free_ports

CONTROL_TOPIC = "control-iceberg"
_LOOK_SECONDS = 0.5


class IcebergSink:
    """A context manager that runs the sink of a topic whose values are JSON, with its offsets where
    it keeps them: in its groups, and in the table's snapshots."""

    def __init__(self, bootstrap: str, topic: str, home: Path) -> None:
        home.mkdir(exist_ok=True)
        self._home = home
        self._table = home / "warehouse" / "db" / topic
        self._log = home / "connect.log"
        (port,) = free_ports(1)
        worker = {
            "bootstrap.servers": bootstrap,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "offset.storage.file.filename": home / "offsets",
            "offset.flush.interval.ms": 1000,
            "listeners": f"http://127.0.0.1:{port}",
        }
        sink = {
            "name": "iceberg",
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "tasks.max": 1,
            "topics": topic,
            "iceberg.tables": f"db.{topic}",
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.control.commit.interval-ms": 2000,
            "iceberg.control.commit.timeout-ms": 10_000,
            "iceberg.catalog.type": "hadoop",
            "iceberg.catalog.warehouse": f"file://{home / 'warehouse'}",
        }
        for name, values in (("worker", worker), ("sink", sink)):
            lines = "".join(f"{key}={value}\n" for key, value in values.items())
            (home / f"{name}.properties").write_text(lines)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "IcebergSink":
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        command = server_command(
            *(class_path("connect"), self._home / "log4j2.properties", main),
            *("worker.properties", "sink.properties"),
        )
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self._home, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            end(self._process)

    def rows(self) -> list[dict[str, object]]:
        """The rows of the table, none before it is there."""
        hint = self._table / "metadata" / "version-hint.text"
        if not hint.exists():
            return []
        metadata = hint.with_name(f"v{hint.read_text().strip()}.metadata.json")
        rows: list[dict[str, object]] = StaticTable.from_metadata(str(metadata)).scan().to_arrow()
        return rows.to_pylist()  # type: ignore[attr-defined]

    def rows_with(self, wanted: dict[str, object], seconds: float) -> list[dict[str, object]]:
        """The rows, once this one is among them. Raises RuntimeError with the log after a time."""
        deadline = time.monotonic() + seconds
        while wanted not in (found := self.rows()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{found}:\n{self._log.read_text(errors='replace')[-6000:]}")
            time.sleep(_LOOK_SECONDS)
        return found
