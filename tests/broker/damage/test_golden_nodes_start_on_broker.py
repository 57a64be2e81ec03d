"""Brokers of the same release start on the log directories of tests/golden, as `kafkalog recover`
says: no false alarm, and none that is missing. Rules: docs/format.md F960 to F973 and F1405.
"""

import re
import shutil
from pathlib import Path

import pytest

from tests.support.broker.class_paths import class_path
from tests.support.broker.node_starts.foretold_start import foretold_start, outcome
from tests.support.broker.node_starts.started_node import started_node
from tests.support.broker.zookeeper_server import zookeeper_server
from tests.support.repository import Unpack

pytestmark = pytest.mark.deep
# What was written in 2026 has to last: no retention, and no commit that is too old.
_SETTINGS = """\
log.dirs=d1
offsets.topic.replication.factor=1
log.retention.ms=-1
offsets.retention.minutes=2000000
log.cleaner.dedupe.buffer.size=4194304
log.index.size.max.bytes=65536
"""
_OF_KRAFT = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:29493
listeners=PLAINTEXT://localhost:29492,CONTROLLER://localhost:29493
controller.listener.names=CONTROLLER
"""
_OF_ZOOKEEPER = """\
broker.id={}
listeners=PLAINTEXT://localhost:29492
zookeeper.connect=localhost:29493
"""


def laid_out(source: Path, folder: Path, settings: str) -> Path:
    """Copy log directories to d1, or d1 and d2, in a folder with server.properties."""
    folder.mkdir()
    has_two = (source / "d1").is_dir()
    shutil.copytree(source, folder if has_two else folder / "d1", dirs_exist_ok=True)
    text = settings + _SETTINGS
    (folder / "server.properties").write_text(
        text.replace("log.dirs=d1", "log.dirs=d1,d2") if has_two else text
    )
    return folder


@pytest.mark.parametrize(
    ("name", "version", "starts"),
    [
        ("kafka44", "4.4.0", True),
        ("positions44", "4.4.0", True),
        ("connect43", "4.3.1", True),
        # These settings switch tiered storage off.
        ("tiered43", "4.3.1", True),
    ],
)
def test_a_node_without_zookeeper_starts_as_foretold(
    name: str, version: str, starts: bool, unpacked: Unpack, tmp_path: Path
) -> None:
    source = unpacked(f"{name}.logs") / "log-dirs"
    folder = laid_out(source, tmp_path / "node", _OF_KRAFT)
    said = foretold_start(folder, version)
    found = started_node(folder, kafka=class_path("broker", version))
    assert found.started == starts, found.log[-2000:]
    assert said == outcome(found)


@pytest.mark.parametrize(
    ("name", "version", "jars", "broker_id"),
    [("kafka39zk", "3.9.2", "kafka39", 1), ("kafka010", "0.10.2.2", "kafka010", 0)],
)
def test_a_broker_with_zookeeper_starts_as_foretold(
    name: str, version: str, jars: str, broker_id: int, unpacked: Unpack, tmp_path: Path
) -> None:
    source = unpacked(f"{name}.logs") / "log-dirs"
    folder = laid_out(source, tmp_path / "node", _OF_ZOOKEEPER.format(broker_id))
    (tmp_path / "zookeeper").mkdir()
    data_dir = tmp_path / "zookeeper/data"
    shutil.copytree(unpacked(f"{name}.zookeeper") / "zookeeper-after-broker-stop", data_dir)
    said = foretold_start(folder, version, "--zookeeper", data_dir)
    with zookeeper_server(tmp_path / "zookeeper", {}) as zookeeper:
        found = started_node(folder, kafka=class_path(jars), zookeeper_port=zookeeper.port)
    assert found.started, found.log[-2000:]
    assert said == outcome(found)
    assert not re.search(r"\bFATAL\b", found.log)
