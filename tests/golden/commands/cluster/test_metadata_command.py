"""`kafkalog metadata` on what a real controller wrote; that its image is right is shown in
tests/golden/metadata."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.repository import ROOT

CONTROLLER = ROOT / "examples" / "controller"
KINDS = (
    *("topic", "partition", "broker", "controller", "config", "acl", "user", "quota"),
    *("feature", "voter", "token"),
)


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["metadata", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: object) -> list[dict[str, Any]]:
    code, out, _ = run(*arguments, "--format", "json")
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_rows_has_its_columns_in_every_format(kind: str) -> None:
    found = rows(CONTROLLER, "--by", kind)
    code, out, _ = run(CONTROLLER, "--by", kind, "--format", "csv")
    assert code == 0 and len(out.splitlines()) == len(found) + 1
    code, out, _ = run(CONTROLLER, "--by", kind)
    # A header where there are rows, and the line that sums up.
    assert code == 0 and len(out.splitlines()) == (len(found) + 2 if found else 1)
    assert "as of offset 707, leader epoch 2, 2026-11-21T07:42:46.934Z" in out


def test_a_topic_that_was_deleted_is_there_as_of_a_moment_before() -> None:
    (deleted,) = (
        row
        for row in rows(CONTROLLER, "--diff", "start", "end", "--topics")
        if row["record_name"] == "RemoveTopicRecord"
    )
    assert (deleted["change"], deleted["new"]) == ("deleted", None)
    topic, offset = deleted["topic"], deleted["offset"]
    assert topic not in [row["topic"] for row in rows(CONTROLLER)]
    for moment in (("--as-of-offset", offset), ("--as-of", deleted["timestamp_ms"] - 1)):
        (row,) = rows(CONTROLLER, "--topic", topic, *moment)
        assert row["topic_id"] and row["partitions"] == 1
    code, out, _ = run(CONTROLLER, "--commands", "--topic", topic, "--as-of-offset", offset)
    assert code == 0 and f"--create --topic {topic} --replica-assignment 1" in out
    code, _, err = run(CONTROLLER, "--topic", topic)
    assert code == 2 and "topics at that moment" in err


def test_a_range_of_changes_is_by_offsets_times_topics_and_kinds() -> None:
    # By kafka-dump-log: 434 sets and 435 removes retention.ms of shop.idem.
    asked = ("--diff", "434", "436")
    found = rows(CONTROLLER, *asked)
    assert [(row["offset"], row["change"], row["old"], row["new"]) for row in found] == [
        (434, "created", None, {"value": "1234567890"}),
        (435, "deleted", {"value": "1234567890"}, None),
    ]
    assert rows(CONTROLLER, *asked, "--topic", "shop.raw") == []
    assert rows(CONTROLLER, *asked, "--by", "acl") == []
    assert len(rows(CONTROLLER, *asked, "--by", "config", "--topic", "shop.idem")) == 2
    times = (1795246863682, 1795246863683)
    assert [row["offset"] for row in rows(CONTROLLER, "--diff", *times)] == [434]


def test_secrets_are_shown_only_on_request() -> None:
    (hidden,) = rows(CONTROLLER, "--by", "user")
    (shown,) = rows(CONTROLLER, "--by", "user", "--show-secrets")
    names = ("salt", "stored_key", "server_key")
    assert {hidden[name] for name in names} == {"***"}
    assert all(len(shown[name]) > 20 for name in names)
    _, out, _ = run(CONTROLLER, "--diff", "start", "end", "--format", "json")
    assert not any(shown[name] in out for name in names)


def test_damage_and_records_without_effect_are_named(tmp_path: Path) -> None:
    copy = tmp_path / "controller"
    shutil.copytree(CONTROLLER, copy)
    path = copy / "__cluster_metadata-0" / f"{660:020d}.log"
    data = bytearray(path.read_bytes())
    data[2500] ^= 1
    path.write_bytes(data)
    code, out, err = run(copy)
    assert code == 3 and "as of offset 705, " in out
    assert f"{path}: position 2463, base offset 705: checksum" in err
    for snapshot in path.parent.glob("*.checkpoint"):
        snapshot.unlink()
    (path.parent / f"{0:020d}.log").unlink()
    code, _, err = run(copy)
    assert code == 3 and "nothing is left of that time: the log begins at offset 218" in err


def test_changes_begin_with_the_first_snapshot_of_a_log_without_its_beginning(
    tmp_path: Path,
) -> None:
    # F329
    copy = tmp_path / "controller"
    shutil.copytree(CONTROLLER, copy)
    (copy / "__cluster_metadata-0" / f"{0:020d}.log").unlink()
    code, out, err = run(copy, "--diff", "start", "end", "--format", "json")
    assert code == 0
    assert "begins at offset 218: what changed before offset 301 is not known" in err
    found = [json.loads(line) for line in out.splitlines()]
    assert found == rows(CONTROLLER, "--diff", "301", "end")
    code, _, err = run(copy, "--diff", "400", "end")
    assert code == 0 and err == ""


@pytest.mark.parametrize(
    "options",
    [
        ("--diff", "start", "end", "--as-of", "2026-11-21T12:00:00Z"),
        ("--diff", "start", "end", "--commands"),
        ("--commands", "--by", "topic"),
        ("--as-of", "1", "--as-of-offset", "1"),
        ("--as-of-offset", "orders-0=1"),
        ("--topic", "shop.tx", "--by", "acl"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: tuple[str, ...]) -> None:
    code, out, err = run(CONTROLLER, *options)
    assert (code, out) == (2, "") and err.startswith("error: ")


def test_a_period_without_changes_names_the_end_of_the_copy_and_a_reversed_one_is_refused() -> None:
    # F1352; the last record, of offset 706, is of this time by kafka-dump-log.
    code, _, err = run(CONTROLLER, "--diff", "2026-11-21T07:42:47Z", "end")
    assert code == 0
    assert "the newest record is of 2026-11-21T07:42:46.934Z; the hour before it: --diff " in err
    for given in (("end", "-1m"), ("50", "40"), ("40", "start")):
        code, _, err = run(CONTROLLER, "--diff", *given)
        assert (code, "TO is before FROM" in err) == (2, True)
    assert run(CONTROLLER, "--diff", "40", "2026-11-21T07:42:46Z")[0] == 0
