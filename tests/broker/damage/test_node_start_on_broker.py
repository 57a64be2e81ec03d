"""What `kafkalog recover` says of a node's directories is what a real broker makes of them.

Kinds of damage beside those of tests/golden/commands/test_node_starts.py. Rules: docs/format.md
F960 to F973, F1180 to F1197, F1370 to F1377, F1392 to F1398 and F1406 to F1408.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.broker.node_starts.cleaner_damages import CLEANER_DAMAGES
from tests.support.broker.node_starts.leader_damages import LEADER_DAMAGES
from tests.support.broker.node_starts.quorum_damages import QUORUM_DAMAGES
from tests.support.broker.node_starts.read_damages import READ_DAMAGES
from tests.support.broker.node_starts.started_node import started_node
from tests.support.broker.node_starts.startup_damages import DAMAGES
from tests.support.broker.node_starts.typed_lines import MENDED, type_lines
from tests.support.golden.startup_cases import startup_cases
from tests.support.repository import Unpack

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def stopped_node(unpacked: Unpack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directories of a node that was stopped cleanly."""
    control = startup_cases(unpacked)["00-control"]
    return control.made_in(tmp_path_factory.mktemp("node") / "control")


def answers(folder: Path, by: str) -> list[dict[str, Any]]:
    given = ["recover", folder / "d1", folder / "d2", "--by", by, "--all", "--format", "json"]
    given += ["--server-properties", folder / "server.properties", "--kafka", "4.4.0"]
    result = CliRunner().invoke(kafkalog, [*map(str, given), "--processes", "1"])
    return [json.loads(line) for line in result.stdout.splitlines()]


def name_of(row: dict[str, Any]) -> str:
    return f"{row['topic']}-{row['partition']}"


_MAKERS = {
    **DAMAGES,
    **{
        name: damage.make
        for name, damage in (READ_DAMAGES | LEADER_DAMAGES | QUORUM_DAMAGES).items()
    },
}


@pytest.mark.parametrize("damage", _MAKERS)
def test_a_broker_does_what_the_plan_says(damage: str, stopped_node: Path, tmp_path: Path) -> None:
    folder = tmp_path / "node"
    shutil.copytree(stopped_node, folder)
    _MAKERS[damage](folder)
    (node,) = answers(folder, "node")
    directories = answers(folder, "directory")
    rows = answers(folder, "partition")
    found = started_node(folder)
    assert node["broker_starts"] == found.started, found.log[-3000:]
    offline = {Path(row["log_dir"]).name for row in directories if not row["is_online"]}
    assert offline == found.offline
    if found.started:
        aside = {f"{row['topic']}-{row['partition']}" for row in rows if row["is_set_aside"]}
        assert aside == found.set_aside
        leaderless = {
            f"{row['topic']}-{row['partition']}" for row in rows if row["has_leader"] is False
        }
        assert leaderless == found.leaderless
        starts = {row["directory"]: row["log_start_offset"] for row in rows}
        plain = starts.get(str(folder / "d2/orders-0"))
        if plain is not None and found.segments.get("orders-0"):
            assert min(found.segments["orders-0"]) <= plain


@pytest.mark.parametrize("damage", CLEANER_DAMAGES)
def test_the_cleaner_gives_up_what_the_plan_says(
    damage: str, stopped_node: Path, tmp_path: Path
) -> None:
    # F1196.
    folder = tmp_path / "node"
    shutil.copytree(stopped_node, folder)
    CLEANER_DAMAGES[damage].make(folder)
    (row,) = (row for row in answers(folder, "partition") if name_of(row) == "orders-0")
    found = started_node(folder)
    assert found.started
    is_cleaned = "cleaned log orders-0" in found.log
    assert is_cleaned == (row["cleaning_stops_at"] is None)
    assert ("(orders-0) as uncleanable" in found.log) != is_cleaned


@pytest.mark.parametrize("name", MENDED)
def test_a_broker_starts_after_the_lines_to_type(
    name: str, unpacked: Unpack, tmp_path: Path
) -> None:
    folder = startup_cases(unpacked)[name].made_in(tmp_path / "node")
    assert type_lines(folder) == 1
    found = started_node(folder)
    assert found.started, found.log[-3000:]
    assert not (found.offline or found.set_aside or found.leaderless)
