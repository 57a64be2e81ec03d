"""The past by several brokers' copies of a log, which the cleaner of each has cleaned at other
times, against what the clients wrote down: set restore44 of tests/golden/README.md. F1294."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kafkalog
from kafkalog.command_line.main import kafkalog as command
from tests.support.repository import Unpack

# Node 1 was copied at 19:48:42, node 2 at 19:48:49, node 3 at 19:49:01.
BY_NODE_1, BY_NODE_2 = "2026-11-25T19:48:41Z", "2026-11-25T19:48:48.5Z"
# Of this one only node 3 knows, whose cleaner has removed older values since.
BY_NONE = "2026-11-25T19:48:50Z"
MOMENTS_MS = {BY_NODE_1: 1_795_636_121_000, BY_NODE_2: 1_795_636_128_500}
State = dict[tuple[int, str], tuple[int, str]]


@pytest.fixture
def nodes(unpacked: Unpack) -> list[Path]:
    return sorted((unpacked("restore44.logs") / "snapshots").glob("node*/data"))


@pytest.fixture
def ledger(unpacked: Unpack) -> list[dict[str, Any]]:
    text = (unpacked("restore44.golden") / "ledgers" / "state.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def state(*given: object) -> tuple[State, str]:
    """What the command says is the state of topic `state`, and its words."""
    arguments = ["state", *map(str, given), "--topic", "state", "--format", "json"]
    result = CliRunner().invoke(command, [*arguments, "--processes", "1"])
    assert result.exit_code == 0, result.stderr
    rows = map(json.loads, result.stdout.splitlines())
    found = {
        (row["partition"], row["key"]): (int(row["offset"]), str(row["value"])) for row in rows
    }
    return found, result.stderr


def replayed(ledger: list[dict[str, Any]], ends: dict[int, int]) -> State:
    """What clients wrote below these offsets, one record after another."""
    found: State = {}
    for deed in sorted(ledger, key=lambda deed: int(deed["offset"])):
        if deed["offset"] < ends.get(deed["partition"], 0):
            place = deed["partition"], deed["key"]
            found.pop(place, None)
            if deed["value"] is not None:
                found[place] = deed["offset"], deed["value"]
    return found


def ends_at(ledger: list[dict[str, Any]], moment: str) -> dict[int, int]:
    """The first offset of each partition that is as late."""
    late = [deed for deed in ledger if deed["ts"] >= MOMENTS_MS[moment]]
    return {
        number: min(deed["offset"] for deed in late if deed["partition"] == number)
        for number in (0, 1)
    }


def test_a_state_is_read_from_the_copy_that_was_cleaned_least(
    nodes: list[Path], ledger: list[dict[str, Any]]
) -> None:
    found, words = state(*nodes, "--as-of", BY_NODE_1)
    assert found == replayed(ledger, ends_at(ledger, BY_NODE_1))
    assert f"read from the copies in {nodes[0]}, which were cleaned less" in words
    assert "state-0, state-1" in words
    assert "NOT EXACT" not in words


def test_where_no_copy_has_all_the_one_that_was_cleaned_least_is_read(
    nodes: list[Path], ledger: list[dict[str, Any]]
) -> None:
    # Node 2 is exact from offset 657 of partition 0 on, and from 655 of partition 1; that of the
    # moment is 650.
    expected = replayed(ledger, ends_at(ledger, BY_NODE_2))
    found, words = state(*nodes, "--as-of", BY_NODE_2)
    assert {place: row for place, row in expected.items() if place[0] == 0} == {
        place: row for place, row in found.items() if place[0] == 0
    }
    # What is there is right, and what is missing is not called known.
    assert found.items() < expected.items()
    assert "values may be missing in 1 of 2 partitions" in words
    assert "NOT EXACT: state-1 at offset 650" in words
    last, _ = state(nodes[2], "--as-of", BY_NODE_2)
    assert last.items() < found.items()


def test_a_copy_that_ends_before_the_moment_is_not_read(nodes: list[Path]) -> None:
    # Nodes 1 and 2 were cleaned less, and were copied before.
    found, words = state(*nodes, "--as-of", BY_NONE)
    assert "the state is not exact: values may be missing in 2 of 2 partitions" in words
    assert "read from the copies" not in words
    assert found == state(nodes[2], "--as-of", BY_NONE)[0]
    assert "no record is as late" not in words
    # Alone they say so.
    _, words = state(nodes[1], "--as-of", BY_NONE)
    assert "no record is as late as that time in state-0, state-1" in words


@pytest.mark.parametrize(("ends", "node"), [((580, 500), 0), ((700, 665), 1)])
def test_a_state_at_offsets_is_read_so_too(
    ends: tuple[int, int], node: int, nodes: list[Path], ledger: list[dict[str, Any]]
) -> None:
    # Node 1 ends below the second ones.
    given = [part for n in (0, 1) for part in ("--as-of-offset", f"state-{n}={ends[n]}")]
    found, words = state(*nodes, *given)
    assert found == replayed(ledger, dict(enumerate(ends)))
    assert f"read from the copies in {nodes[node]}, which were cleaned less" in words


@pytest.fixture
def alone(nodes: list[Path], tmp_path: Path) -> Path:
    """The partitions of topic `state` of node 1, as `cp` leaves them in a directory of their own:
    no checkpoint says that the cleaner has been there."""
    for number in (0, 1):
        shutil.copytree(nodes[0] / f"state-{number}", tmp_path / "cp" / f"state-{number}")
    return tmp_path / "cp"


def test_without_a_cleaners_checkpoint_missing_offsets_say_that_values_may_be_missing(
    alone: Path, ledger: list[dict[str, Any]]
) -> None:
    # F1425: ten seconds before the copy all but a few values had been cleaned away since.
    found, words = state(alone, "--as-of", "2026-11-25T19:48:31Z")
    assert len(found) < len({(deed["partition"], deed["key"]) for deed in ledger})
    assert "values may be missing in 2 of 2 partitions" in words
    assert words.count("no cleaner-offset-checkpoint is beside the log") == 2
    # At the end it is the state whatever the cleaner has done.
    found, words = state(alone)
    assert found == replayed(ledger, {0: 595, 1: 541})
    assert "NOT EXACT" not in words


def test_without_a_cleaners_checkpoint_a_log_without_missing_offsets_is_exact(
    nodes: list[Path], tmp_path: Path
) -> None:
    # F1425: the cleaner has never been in topic events.
    shutil.copytree(nodes[0] / "events-0", tmp_path / "events-0")
    arguments = ["state", str(tmp_path), "--as-of", "2026-11-25T19:48:31Z"]
    result = CliRunner().invoke(command, arguments)
    assert "NOT EXACT" not in result.output
    assert result.exit_code == 0


def test_a_log_that_does_not_begin_at_the_topics_beginning_is_not_all_of_the_past(
    nodes: list[Path], tmp_path: Path
) -> None:
    # F1425: as retention, or an incomplete copy, leaves it.
    shutil.copytree(nodes[0] / "events-0", tmp_path / "events-0")
    first, second, *_ = sorted((tmp_path / "events-0").glob("*.log"))
    first.unlink()
    base = int(second.stem)
    arguments = ["state", str(tmp_path), "--fail-on-findings"]
    past = CliRunner().invoke(command, [*arguments, "--as-of", "2026-11-25T19:48:38Z"])
    assert past.exit_code == 1
    assert f"the log begins at offset {base}: what was below it had been deleted" in past.output
    now = CliRunner().invoke(command, arguments)
    assert now.exit_code == 0
    assert f"not the whole history is here: events-0 from offset {base}" in now.output


def test_find_and_compaction_do_not_deny_the_cleaner_without_its_checkpoint(alone: Path) -> None:
    # F1425
    found = CliRunner().invoke(command, ["find", str(alone / "state-1"), "--key", "none"])
    assert "the log is without some offsets: of a key, older records may have been" in found.output
    asked = CliRunner().invoke(command, ["compaction", str(alone)])
    assert f"whether logs in {alone} were cleaned is not known" in asked.output
    assert "none is cleaned" not in asked.output
    # F1351: what may be compacted is not offered as what is lost by removing it.
    plan = CliRunner().invoke(
        command, ["retention", str(alone), "--by", "segment", "--format", "json"]
    )
    rows = [json.loads(line) for line in plan.stdout.splitlines()]
    assert {(row["cleanup_policy"], row["cleanup_policy_from"]) for row in rows} == {
        ("compact", "assumed")
    }


def test_undelete_brings_back_what_the_cleaner_removed(
    nodes: list[Path], ledger: list[dict[str, Any]], tmp_path: Path
) -> None:
    # F197: segments 0 and 495 in use have taken the place of ten, which end in .deleted. Of the
    # first 70 offsets, which a still earlier cleaning had thinned, no file has a record.
    arguments = ["undelete", str(nodes[0]), "--topic", "state", "--to", str(tmp_path / "un")]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    assert (
        "4 cleaned segments left out, and the segments from before the cleaning copied"
        in result.stdout
    )
    written = {(deed["partition"], deed["offset"]): deed["key"] for deed in ledger}
    for number in (0, 1):
        name = f"state-{number}"
        files = [str(path) for path in (nodes[0] / name).iterdir() if ".log" in path.name]
        there = set().union(*(offsets_in(file) for file in files))
        back = offsets_in(str(tmp_path / "un" / name))
        assert back == there
        assert len(back) > 3 * len(offsets_in(str(nodes[0] / name)))
        assert {(number, offset) for offset, _ in back} <= {*written}
        assert all(written[number, offset] == key for offset, key in back)
    checked = CliRunner().invoke(command, ["check", str(tmp_path / "un")])
    assert checked.stdout.startswith("sound: checked 19 segments of 2 partitions")
    _, words = state(tmp_path / "un", "--as-of", "2026-11-25T19:48:31Z")
    assert "or, in a copy by kafkalog undelete, have an older one" in words
    assert "kafkalog undelete copies them" not in words


def test_segments_that_wait_for_deletion_are_named_beside_a_state_that_is_not_exact(
    nodes: list[Path],
) -> None:
    _, words = state(nodes[0], "--as-of", "2026-11-25T19:48:32Z")
    assert "NOT EXACT: state-0 at offset" in words
    assert list(nodes[0].glob("state-[01]/*.log.deleted"))
    assert "state-0, state-1: segments that the broker has deleted, but not yet removed," in words


def offsets_in(path: str) -> set[tuple[int, str]]:
    """The offsets and keys of all records in a file or a directory."""
    rows = kafkalog.scan(path, columns=("offset", "key")).to_table().to_pylist()
    return {(row["offset"], row["key"].decode()) for row in rows}


def txns(*given: object) -> tuple[list[dict[str, Any]], str]:
    arguments = ["txns", *map(str, given), "--format", "json", "--processes", "1"]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


@pytest.mark.parametrize(("moment", "node"), [(BY_NODE_1, 0), (BY_NODE_2, 1)])
def test_transactional_ids_of_a_past_time_are_those_that_clients_had_used(
    moment: str, node: int, nodes: list[Path], unpacked: Unpack
) -> None:
    text = (unpacked("restore44.golden") / "ledgers" / "txns.jsonl").read_text()
    deeds = [json.loads(line) for line in text.splitlines()]
    at_s = MOMENTS_MS[moment] / 1000
    ended = [each for each in deeds if each["end_return"] and each["end_return"] < at_s]
    used = {each["tx"].rpartition(":")[0] for each in ended}
    found, _ = txns(*nodes, "--list", "--as-of", moment)
    assert used <= {row["transactional_id"] for row in found}
    # The best replicas alone have fewer: the cleaner has removed the records from then.
    alone, _ = txns(nodes[2], "--list", "--as-of", moment)
    assert len(alone) < len(found)
    _, notes = txns(*nodes, "--as-of", moment)
    (names,) = re.findall(rf"read from the copies in {nodes[node]}, which .*: (.*)", notes)
    assert {"__transaction_state-0", "__transaction_state-1"} <= {*names.split(", ")}
    assert "not known as of" not in notes


def test_one_replica_alone_is_read_as_it_is(nodes: list[Path]) -> None:
    assert "read from the copies" not in state(nodes[0], "--as-of", BY_NODE_1)[1]
    assert "read from the copies" not in txns(nodes[0], "--as-of", BY_NODE_1)[1]


def test_a_key_is_not_denied_where_no_record_has_one(nodes: list[Path]) -> None:
    # F587: producers of topic plain gave none.
    asked = ["find", str(nodes[0]), "--topic", "plain", "--key", "k"]
    result = CliRunner().invoke(command, asked)
    assert result.exit_code == 1
    assert result.stderr.endswith("not found; 857 of 857 records have no key\n")
