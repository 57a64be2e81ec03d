"""What a broker does at its start with files beside its log of `__cluster_metadata` that were
damaged is what `kafkalog recover` foretells. Rules: F920 to F922."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.broker.kafka_server import KafkaServer, ServerError

# So that a few changes make several snapshots.
SETTINGS = {"metadata.log.max.record.bytes.between.snapshots": 1500}
DIRECTORY = "__cluster_metadata-0"


def snapshots(metadata: Path) -> list[Path]:
    found = (metadata / DIRECTORY).glob("*.checkpoint")
    return sorted(found, key=lambda path: (path.name[21:31], path.name))


def inverted(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 255
    path.write_bytes(data)


def without_logs(metadata: Path) -> None:
    for path in (metadata / DIRECTORY).glob("*.log"):
        path.unlink()


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda metadata: None,
    "newest snapshot": lambda metadata: inverted(snapshots(metadata)[-1], 200),
    "newest snapshot cut": lambda metadata: snapshots(metadata)[-1].write_bytes(b""),
    "older snapshot": lambda metadata: inverted(snapshots(metadata)[-2], 200),
    "name": lambda metadata: (metadata / DIRECTORY / "foo.checkpoint").write_text("text"),
    "bootstrap": lambda metadata: (metadata / "bootstrap.checkpoint").write_text("text" * 50),
    "state": lambda metadata: (metadata / DIRECTORY / "quorum-state").write_text("{"),
    "no state": lambda metadata: (metadata / DIRECTORY / "quorum-state").unlink(),
    "no log": without_logs,
}


def plan(metadata: Path) -> dict[str, Any]:
    result = CliRunner().invoke(kafkalog, ["recover", str(metadata), "--format", "json"])
    (row,) = map(json.loads, result.stdout.splitlines())
    return dict(row)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a broker that has stopped, with several snapshots."""
    home = tmp_path_factory.mktemp("metadata") / "home"
    with KafkaServer(home, settings=SETTINGS) as server:
        for number in range(8):
            server.create_topic(f"topic-{number}", partitions=6)
    assert len(snapshots(home / "metadata")) > 2
    return home


@pytest.mark.deep
@pytest.mark.parametrize("name", CHANGES)
def test_a_broker_starts_or_ends_as_foretold(name: str, stopped: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(stopped, home)
    metadata = home / "metadata"
    CHANGES[name](metadata)
    row = plan(metadata)
    server, starts = KafkaServer(home, settings=SETTINGS), True
    try:
        server.start()
    except ServerError:
        starts = False
    finally:
        server.stop()
    assert row["broker_starts"] == starts, row["start_error"]
    if name == "no log":
        assert row["missing_offsets"] > 0
        assert (metadata / DIRECTORY / f"{row['log_end_offset']:020d}.log").exists()
