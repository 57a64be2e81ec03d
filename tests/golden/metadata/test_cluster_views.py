"""The views of the cluster's metadata have the rows of `kafkalog metadata`."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.errors import CorruptDataError
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.views.engine import LocalViews, rows_of_view
from tests.support.repository import ROOT

CONTROLLER = ROOT / "examples" / "controller"
AS_OF = "1795246919912"
COMMANDS = {
    "cluster_topics": ("--by", "topic"),
    "cluster_partitions": ("--by", "partition"),
    "cluster_configs": ("--by", "config"),
    "cluster_acls": ("--by", "acl"),
    "metadata_changes": (),
}


def view_rows(view: str, path: Path, **options: str) -> list[dict[str, Any]]:
    logs = find_partitions([str(path)], strict=False)
    return list(rows_of_view(LocalViews([str(path)], logs, 1), view, options=options))


@pytest.mark.parametrize("view", COMMANDS)
def test_a_view_has_the_rows_of_the_command(view: str) -> None:
    given = ["metadata", str(CONTROLLER), *COMMANDS[view], "--format", "json"]
    # The changes are those before the first after the time: by kafka-dump-log, offset 566.
    limit = ("--diff", "start", "566") if view == "metadata_changes" else ("--as-of", AS_OF)
    printed = CliRunner().invoke(kafkalog, [*given, *limit]).stdout.splitlines()
    rows = view_rows(view, CONTROLLER, asOf=AS_OF)
    assert len(rows) == len(printed)
    for row, line in zip(rows, map(json.loads, printed), strict=True):
        if view == "metadata_changes":
            for name in ("old", "new"):
                line[name] = None if line[name] is None else json.dumps(line[name])
        row["configs"] = dict(row["configs"]) if "configs" in row else None
        assert {name: row[name] for name in line} == line
        assert row["cluster_id"] == "bSXPc0xJod0nPk2Pq19b2w"


def test_damage_is_an_error_unless_it_may_be_passed(tmp_path: Path) -> None:
    copy = tmp_path / "controller"
    shutil.copytree(CONTROLLER, copy)
    log = copy / "__cluster_metadata-0" / f"{660:020d}.log"
    log.write_bytes(log.read_bytes()[:2500] + b"\xff" + log.read_bytes()[2501:])
    with pytest.raises(CorruptDataError, match="checksum"):
        view_rows("cluster_topics", copy, mode="FAILFAST")
    assert {row["as_of_offset"] for row in view_rows("cluster_topics", copy)} == {705}
