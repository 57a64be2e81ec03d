"""`kafkalog compaction` on logs that real cleaners have cleaned. Rules: F255 to F262."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.schemas import table_fields
from tests.support.repository import EXAMPLES, Unpack


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["compaction", *map(str, arguments), "--processes", "1"])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def log_dir(unpacked: Unpack) -> Path:
    (checkpoint,) = unpacked("kafka44.logs").rglob("cleaner-offset-checkpoint")
    return checkpoint.parent


def partitions(log_dir: Path, *arguments: object) -> dict[str, dict[str, Any]]:
    _, out, _ = run(log_dir, "--by", "partition", "--format", "json", *arguments)
    return {f"{row['topic']}-{row['partition']}": row for row in map(json.loads, out.splitlines())}


def test_what_a_real_cleaner_left_has_no_findings(log_dir: Path) -> None:
    code, out, _ = run(log_dir)
    assert code == ExitCode.DONE
    (verdict,) = out.splitlines()
    assert "as the cleaner promises" in verdict
    rows = partitions(log_dir)
    assert rows
    columns = [field["name"] for field in table_fields("compaction_report")]
    assert all(list(row) == columns for row in rows.values())


def test_a_checkpoint_beyond_what_was_cleaned_is_a_finding_by_key(tmp_path: Path) -> None:
    # F255: no cleaner has come to these 300 records of 60 customers, but the checkpoint says so.
    copy = tmp_path / "logs"
    shutil.copytree(EXAMPLES.parent / "shop-week", copy)
    (copy / "cleaner-offset-checkpoint").write_text("0\n1\ncustomers 0 300\n")
    code, out, _ = run(copy, "--format", "json")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == ExitCode.FINDINGS
    assert {(row["topic"], row["kind"]) for row in found} == {("customers", "duplicate_key")}
    assert len(found) == 300 - 60
    assert (found[0]["key"], found[0]["offset"], found[0]["other_offset"]) == ("c-08", 8, 60)
    code, out, _ = run(copy)
    assert "BROKEN: 240 errors, 0 warnings in 1 partition" in out.splitlines()[-1]
    assert "  c-08  " in out
    assert run(copy, "--no-fail-on-findings")[0] == ExitCode.DONE


def test_a_partition_in_its_active_segment_was_never_cleaned(log_dir: Path) -> None:
    # F240: the cleaner leaves the active segment, which is the last one.
    checkpoint = (log_dir / "cleaner-offset-checkpoint").read_text()
    found = partitions(log_dir)
    alone = {
        name
        for name in found
        if len([*(log_dir / name).glob("*.log")]) == 1
        and " ".join(name.rsplit("-", 1)) not in checkpoint
    }
    told = {
        name for name, row in found.items() if (row["why_not"] or "").startswith("never cleaned: ")
    }
    assert told == alone != set()
    assert "--by partition shows all" in run(log_dir)[2]
