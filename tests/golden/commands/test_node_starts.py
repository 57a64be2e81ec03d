"""`kafkalog recover` on the directories of nodes, against what real brokers did to them at their
start. Rules: docs/format.md F960 to F973, F1000 to F1018, F1180 to F1199, F1208
to F1211, F1291, F1370 to F1377."""

import json
import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from tests.support.broker.node_starts.cleaner_damages import CLEANER_DAMAGES
from tests.support.broker.node_starts.leader_damages import LEADER_DAMAGES, OTHER_ID
from tests.support.broker.node_starts.quorum_damages import QUORUM_DAMAGES
from tests.support.broker.node_starts.read_damages import READ_DAMAGES, ReadDamage
from tests.support.broker.node_starts.typed_lines import MENDED, partitions, recovered, type_lines
from tests.support.golden.startup_cases import (
    OTHER_USER,
    STARTED_AT,
    StartupCase,
    startup_case_names,
    startup_cases,
)
from tests.support.repository import Unpack

Row = dict[str, Any]
# A future copy that takes the place of a replica has all of its records; a swap has those of the
# segments that it replaces.
_LOSES_NOTHING = ("04b-future-copy", "58-swap")
# The broker starts as if nothing was wrong: records had gone before.
_LOST_BEFORE = (
    *("12a-metadata-torn", "34b-middle-segment-missing", "42-segments-gone"),
    # A hole in the offsets that no broker fills.
    "11a-overflow-unclean",
)
# What a broker says while it stops.
_WHILE_STOPPING = "Stopped loading"


@pytest.fixture(scope="module")
def cases(unpacked: Unpack) -> dict[str, StartupCase]:
    return startup_cases(unpacked)


@pytest.fixture
def case(request: pytest.FixtureRequest, cases: dict[str, StartupCase]) -> StartupCase:
    return cases[request.param]


def run(case: StartupCase, folder: Path, *more: object) -> Result:
    user = OTHER_USER if case.runs_as_other else os.getuid()
    given = ["recover", folder / "d1", folder / "d2", "--format", "json", "--user", user]
    given += ["--server-properties", folder / "server.properties", "--as-of", STARTED_AT]
    given += ["--kafka", case.kafka_version, "--processes", "1"]
    return CliRunner().invoke(kafkalog, list(map(str, (*given, *more))))


def answers(case: StartupCase, folder: Path, by: str) -> tuple[int, list[Row]]:
    result = run(case, folder, "--by", by)
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


def all_answers(case: StartupCase, folder: Path) -> tuple[int, Row, list[Row], list[Row]]:
    """The exit code, and the rows of the node, its directories and their partitions, of one run."""
    code = run(case, folder, "--output-dir", folder / "tables").exit_code
    (node,), directories, partitions = (
        [
            json.loads(line)
            for path in (folder / "tables" / name).glob("*.json")
            for line in path.read_text().splitlines()
        ]
        for name in ("node_starts", "log_dir_starts", "recovery_plan")
    )
    return code, node, directories, partitions


@pytest.mark.parametrize("case", ["42-segments-gone"], indirect=True)
def test_a_log_that_has_lost_all_of_its_files_is_named_first(
    case: StartupCase, tmp_path: Path
) -> None:
    # F922. The broker made it empty: its end was 0 then, and had been 16.
    assert case.outcome["log_end_offsets"]["orders-0"] == 0
    folder = case.made_in(tmp_path)
    result = CliRunner().invoke(kafkalog, ["recover", str(folder / "d1"), str(folder / "d2")])
    assert result.output.splitlines()[1] == (
        "  orders-0 begins empty: offsets 0 to 15 are in no file of its directory"
    )
    assert "BEGIN EMPTY: 1 partition; MISSING" in result.output.splitlines()[-1]


@pytest.mark.parametrize("case", ["02f-directory-id-twice"], indirect=True)
def test_what_is_deleted_after_a_start_is_not_announced_as_of_a_node_that_does_not_start(
    case: StartupCase, tmp_path: Path
) -> None:
    assert not case.outcome["started"]
    folder = case.made_in(tmp_path)
    given = ["recover", folder / "d1", folder / "d2", "--as-of", "2100-01-01T00:00:00Z"]
    lines = CliRunner().invoke(kafkalog, list(map(str, given))).output.splitlines()
    deletes = [each for each in lines if each.startswith("  retention deletes")]
    assert deletes
    assert all("within minutes of its next start, by" in each for each in deletes)


@pytest.mark.parametrize("case", ["00-control"], indirect=True)
def test_the_markers_of_transactions_are_not_among_the_records_that_are_deleted(
    case: StartupCase, tmp_path: Path
) -> None:
    # F972: three transactions of a record each, and the broker's three markers.
    assert case.outcome["log_end_offsets"]["pay-0"] == 6
    folder = case.made_in(tmp_path)
    given = ["recover", folder / "d1", folder / "d2", "--as-of", "2100-01-01T00:00:00Z", "--all"]
    result = CliRunner().invoke(kafkalog, list(map(str, (*given, "--format", "json"))))
    rows = {name_of(row): row for row in map(json.loads, result.stdout.splitlines())}
    assert rows["pay-0"]["deleted_soon"]["records"] == 3


@pytest.mark.parametrize("case", startup_case_names(), indirect=True)
def test_a_node_becomes_what_a_broker_made_of_it(case: StartupCase, tmp_path: Path) -> None:
    said, folder = case.outcome, case.made_in(tmp_path)
    code, node, directories, rows = all_answers(case, folder)
    assert node["broker_starts"] == said["started"]
    assert all(reason["what_to_do"] for reason in node["reasons"])
    assert bool(node["reasons"]) != said["started"]
    offline = {Path(row["log_dir"]).name for row in directories if not row["is_online"]}
    assert offline == set(said["offline_dirs"])
    if said["started"]:
        assert_partitions(said, {name_of(row): row for row in rows})
    assert bool(code) == has_findings(case)


def name_of(row: Row) -> str:
    return f"{row['topic']}-{row['partition']}"


def assert_partitions(said: Row, rows: dict[str, Row]) -> None:
    aside = {name.partition(".")[0] for name in said["set_aside"]}
    assert {name for name, row in rows.items() if row["is_set_aside"]} == aside
    leaderless = {name for name, row in rows.items() if row["has_leader"] is False}
    assert leaderless == set(said["no_leader"])
    # The broker's list has the partitions that it serves.
    starts = {name: rows[name]["log_start_offset"] for name in said["log_start_offsets"]}
    assert starts == said["log_start_offsets"]
    ends = {name: rows[name]["log_end_offset"] for name in said["log_end_offsets"]}
    assert ends == said["log_end_offsets"]
    assert deleted(rows) == {path for path in said["deleted_segments"] if "-future" not in path}
    refused = [error for error in said["group_load_errors"] if _WHILE_STOPPING not in error]
    assert any(row["coordinator_error"] for row in rows.values()) == bool(refused)


def deleted(rows: dict[str, Row]) -> set[str]:
    """The segments that go at the start or soon after, as the broker's list names them."""
    return {
        f"{Path(row['directory']).parent.name}/{name}/{offset:020d}.log"
        for name, row in rows.items()
        for offset in (*row["deleted_segments"], *(row["deleted_soon"] or {}).get("segments", ()))
        if row["topic"] != "__cluster_metadata"
    }


def has_findings(case: StartupCase) -> bool:
    said = case.outcome
    if case.name in _LOSES_NOTHING:
        return False
    refused = [error for error in said["group_load_errors"] if _WHILE_STOPPING not in error]
    lost = (*said["set_aside"], *said["truncated"], *said["deleted_segments"], *refused)
    kept = (*said["offline_dirs"], *(said["no_leader"] or ()))
    return not said["started"] or bool(lost or kept) or case.name in _LOST_BEFORE


@pytest.mark.parametrize("case", ["02a-meta-missing-d2"], indirect=True)
def test_the_line_to_type_writes_the_file_that_is_missing(
    case: StartupCase, cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F963: the directory's id is the one that the metadata assigns the partitions in it to.
    folder = case.made_in(tmp_path / "damaged")
    sound = cases["00-control"].made_in(tmp_path / "sound")
    _, (node,) = answers(case, folder, "node")
    (reason,) = node["reasons"]
    line = reason["what_to_do"].removesuffix(f" > {folder}/d2/meta.properties")
    text = line.removeprefix("printf ").strip("'").replace("\\n", "\n")
    expected = (sound / "d2/meta.properties").read_text().splitlines()
    assert set(text.splitlines()) == {each for each in expected if not each.startswith("#")}
    assert reason["file"] == f"{folder}/d2/meta.properties"


def test_the_file_that_is_missing_beside_the_metadata_has_the_id_of_before(
    cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F963: kafka-storage.sh would give the directory another id, and its partitions no leader.
    folder = cases["00-control"].made_in(tmp_path)
    lines = (folder / "d1/meta.properties").read_text().splitlines()
    (folder / "d1/meta.properties").unlink()
    _, (node,) = answers(cases["00-control"], folder, "node")
    (reason,) = node["reasons"]
    expected = next(line for line in lines if line.startswith("directory.id="))
    assert f"{expected}\\n" in reason["what_to_do"]


@pytest.mark.parametrize("case", ["18a-partition-of-root"], indirect=True)
def test_text_begins_with_the_node_and_the_line_to_type(case: StartupCase, tmp_path: Path) -> None:
    # F965.
    folder = case.made_in(tmp_path)
    given = ["recover", folder / "d1", folder / "d2", "--user", OTHER_USER, "--as-of", STARTED_AT]
    lines = CliRunner().invoke(kafkalog, list(map(str, given))).stdout.splitlines()
    name = pwd.getpwuid(OTHER_USER).pw_name
    assert lines[0] == f"Node 1 starts with Kafka 4.4, WITHOUT {folder}/d2"
    assert lines[1].startswith(f"  offline: {folder}/d2/orders-0: user {name} may not use it")
    assert lines[2].strip().startswith(f"chown {name} {folder}/d2/orders-0")
    assert lines[-1].endswith("NO LEADER: 3 partitions")


_DAMAGES: dict[str, ReadDamage] = {**READ_DAMAGES, **LEADER_DAMAGES, **QUORUM_DAMAGES}


@pytest.mark.parametrize("damage", _DAMAGES)
def test_a_node_becomes_what_brokers_made_of_such_files(
    damage: str, cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F960 to F973, F1180 to F1191, F1194, F1197, F1370 to F1377, F1392, F1394 to F1398 and F1406
    # to F1408, as brokers of 4.4.0 did.
    expected, case = _DAMAGES[damage], cases["00-control"]
    folder = case.made_in(tmp_path)
    expected.make(folder)
    _, node, directories, rows = all_answers(case, folder)
    assert node["broker_starts"] == expected.starts
    offline = {Path(row["log_dir"]).name for row in directories if not row["is_online"]}
    assert offline == expected.offline
    if expected.starts:
        assert {name_of(row) for row in rows if row["is_set_aside"]} == expected.set_aside
        leaderless = {name_of(row) for row in rows if row["has_leader"] is False}
        assert leaderless == expected.leaderless
        assert all(
            row["leader_reason"]
            for row in rows
            if row["has_leader"] is False and not row["is_set_aside"]
        )


def test_an_unclean_election_is_a_finding_with_its_reason(
    cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F1190: the broker that is not in sync leads, and what it lacks is lost.
    case = cases["00-control"]
    folder = case.made_in(tmp_path)
    LEADER_DAMAGES["unclean-election-of-topic"].make(folder)
    code, rows = answers(case, folder, "partition")
    assert code == 1
    (row,) = (row for row in rows if row["leader_reason"])
    assert row["has_leader"]
    assert "records that broker 2 has are LOST" in row["leader_reason"]


def test_nodes_that_are_given_together_start_together(
    cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F1188: broker 2 is in sync, and leads once it is back.
    folder = cases["00-control"].made_in(tmp_path)
    LEADER_DAMAGES["in-sync-is-one-that-is-fenced"].make(folder)
    other = folder / "of-broker-2"
    other.mkdir()
    meta = (folder / "d2/meta.properties").read_text().replace("node.id=1", "node.id=2")
    own = re.sub(r"directory\.id=\S+", f"directory.id={OTHER_ID}", meta)
    (other / "meta.properties").write_text(own)
    (other / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":80}')
    given = [folder / "d1", folder / "d2", "--all", "--format", "json", "--processes", "1"]

    def leaderless(*more: Path) -> set[str]:
        result = CliRunner().invoke(kafkalog, ["recover", *map(str, (*more, *given))])
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        return {name_of(row) for row in rows if row["has_leader"] is False}

    assert leaderless() == {"orders-0"}
    assert leaderless(other) == set()


def test_partitions_without_a_directory_begin_empty(
    cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F970: also where no checkpoint names them. A broker of 4.4.0 made them again.
    case = cases["00-control"]
    folder = case.made_in(tmp_path)
    for path in folder.glob("d2/*"):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name.endswith("-checkpoint"):
            path.unlink()
    code, rows = answers(case, folder, "partition")
    assert code == 1
    emptied = {name_of(row) for row in rows if row["begins_empty"]}
    assert emptied == {"orders-0", "comp-0", "__consumer_offsets-0"}


def test_without_the_metadata_it_is_not_known_what_becomes_of_partitions(
    cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F968: a broker of 4.4.0 set all aside.
    folder = cases["24-metadata-log-gone"].made_in(tmp_path)
    given = ["recover", folder / "d1", folder / "d2", "--as-of", STARTED_AT]
    lines = CliRunner().invoke(kafkalog, list(map(str, given))).stdout.splitlines()
    assert lines[0].endswith("what becomes of its partitions is NOT KNOWN:")
    assert lines[1].startswith("  no __cluster_metadata-0 that can be read is in ")
    assert "sets all of 6 partitions aside" in lines[2]
    assert lines[-1].endswith("whether partitions are set aside is NOT KNOWN")


def test_a_version_without_zookeeper_does_not_start_on_its_directories(tmp_path: Path) -> None:
    # F1192: a broker of 4.4.0 ended on the directories of one of 3.9.2.
    log_dir = tmp_path / "data"
    (log_dir / "orders-0").mkdir(parents=True)
    (log_dir / "orders-0" / f"{0:020d}.log").touch()
    (log_dir / "meta.properties").write_text("version=0\nbroker.id=0\ncluster.id=abc\n")

    def starts(version: str) -> bool:
        given = ["--kafka", version, "--by", "node", "--format", "json", "--processes", "1"]
        result = CliRunner().invoke(kafkalog, ["recover", str(log_dir), *given])
        return bool(json.loads(result.stdout)["broker_starts"])

    assert starts("3.9.2")
    assert not starts("4.0.1")


@pytest.mark.parametrize(("version", "starts"), [("3.5.2", False), ("3.8", False), ("3.9", True)])
def test_a_version_without_a_table_is_judged_by_what_is_known(
    version: str, starts: bool, cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F1198: a broker of 3.5.2 ended on these directories of 3.9.2: "No MetadataVersion with
    # metadata version 21".
    folder = cases["13-3.9.2-on-4.4.0"].made_in(tmp_path)
    given = ["recover", folder / "d1", folder / "d2", "--as-of", STARTED_AT, "--kafka", version]
    given += ["--by", "node", "--format", "json", "--processes", "1"]
    result = CliRunner().invoke(kafkalog, list(map(str, given)))
    assert result.exit_code == (not starts)
    node = json.loads(result.stdout)
    assert node["broker_starts"] == starts
    assert ["NOT JUDGED" in words for words in node["assumed"]] == [True] * (not starts)


@pytest.mark.parametrize("damage", CLEANER_DAMAGES)
def test_the_plan_says_where_cleaning_stops_for_good(
    damage: str, cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F1196, as brokers of 4.4.0 did.
    case = cases["00-control"]
    folder = case.made_in(tmp_path)
    CLEANER_DAMAGES[damage].make(folder)
    _, rows = answers(case, folder, "partition")
    (row,) = (row for row in rows if name_of(row) == "orders-0")
    assert (row["cleaning_stops_at"] is not None) == CLEANER_DAMAGES[damage].stops


@pytest.mark.parametrize("case", MENDED, indirect=True)
def test_the_lines_to_type_mend_what_is_named(case: StartupCase, tmp_path: Path) -> None:
    # F960 to F973: a broker of 4.4.0 started after these lines, with all partitions.
    folder = case.made_in(tmp_path)
    assert type_lines(folder) == 1
    assert recovered(folder).startswith("Node 1 starts with Kafka 4.4.0\n")
    rows = partitions(folder)
    assert not [row for row in rows if row["is_set_aside"] or row["has_leader"] is False]


@pytest.mark.parametrize("case", ["25-node-id-config"], indirect=True)
def test_a_wrong_node_id_is_changed_in_the_settings(case: StartupCase, tmp_path: Path) -> None:
    # F962: the directories agree, so the setting is wrong: formatting them would be of no use.
    folder = case.made_in(tmp_path)
    text = recovered(folder)
    assert "    sed -E -i -e '/^\\s*(node|broker)\\.id\\s*[=:]/d' -e '$a node.id=1' " in text
    assert "kafka-storage.sh" not in text
    # Its consequence is not named beside the cause.
    assert "set aside" not in text
    assert not any(row["is_set_aside"] for row in partitions(folder))


@pytest.mark.parametrize("case", ["33a-log-start-beyond-end"], indirect=True)
def test_the_line_keeps_a_log_that_ends_before_its_recorded_start(
    case: StartupCase, tmp_path: Path
) -> None:
    # F1199: a broker of 4.4.0 deleted all segments; the control begins at 0, without that line.
    folder = case.made_in(tmp_path)
    text = recovered(folder)
    assert "orders-0 begins at offset 100 by this file" in text
    line = next(each for each in text.splitlines() if each.strip().startswith("sed -i "))
    subprocess.run(["bash", "-c", line], check=True)
    assert "orders 0 0\n" in (folder / "d2/log-start-offset-checkpoint").read_text()
    assert recovered(folder).endswith("nothing is lost\n")


@pytest.mark.parametrize("case", ["00-control"], indirect=True)
def test_partitions_of_a_log_directory_that_was_formatted_again_begin_empty(
    case: StartupCase, tmp_path: Path
) -> None:
    # F1211: a broker of 4.4.0 made them, and led them without a record.
    folder = case.made_in(tmp_path)
    meta = (folder / "d2/meta.properties").read_text()
    shutil.rmtree(folder / "d2")
    (folder / "d2").mkdir()
    own = re.sub(r"directory\.id=\S+", f"directory.id={OTHER_ID}", meta)
    (folder / "d2/meta.properties").write_text(own)
    code, rows = answers(case, folder, "partition")
    emptied = {name_of(row): row["has_leader"] for row in rows if row["begins_empty"]}
    assert emptied == dict.fromkeys(("__consumer_offsets-0", "comp-0", "orders-0"))
    assert code == 1


@pytest.mark.parametrize("case", ["06i-torn-value"], indirect=True)
def test_a_coordinator_that_does_not_load_has_a_line(case: StartupCase, tmp_path: Path) -> None:
    # F1000.
    folder = case.made_in(tmp_path)
    text = recovered(folder)
    assert "__consumer_offsets-0 does not load at offset 17: it cannot be read: " in text
    moved = f"mv {folder}/d2/__consumer_offsets-0 {folder}/d2.aside.__consumer_offsets-0"
    assert f"kafkalog groups {folder}/d2 --format csv --columns " in text
    assert f" > commits.csv; {moved}  # on each broker that has it; " in text


def test_what_only_a_broker_knows_of_is_given_up(
    cases: dict[str, StartupCase], tmp_path: Path
) -> None:
    # F1291: the only controller is behind a broker of the cluster, and decides.
    folder = cases["00-control"].made_in(tmp_path)
    other = folder / "of-broker-2"
    shutil.copytree(folder / "d1/__cluster_metadata-0", other / "__cluster_metadata-0")
    meta = (folder / "d1/meta.properties").read_text().replace("node.id=1", "node.id=2")
    own = re.sub(r"directory\.id=\S+", f"directory.id={OTHER_ID}", meta)
    (other / "meta.properties").write_text(own)
    (log,) = (folder / "d1/__cluster_metadata-0").glob("*.log")
    log.write_bytes(first_batches(log.read_bytes(), 12))
    given = ["recover", folder / "d1", folder / "d2", "--as-of", STARTED_AT, "--processes", "1"]

    def aside(*more: Path) -> set[str]:
        every = map(str, (*given, *more, "--all", "--format", "json"))
        result = CliRunner().invoke(kafkalog, list(every))
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        return {name_of(row) for row in rows if row["is_set_aside"]}

    assert aside()
    assert aside(other) == aside()
    text = CliRunner().invoke(kafkalog, list(map(str, (*given, other)))).stdout
    assert (
        "node 1 lacks metadata that node 2 has, and can still become the leader of the controllers "
        "(1 of 1 are here): its copy ends at" in text
    )
    assert text.count("assumed: the cluster begins with the metadata of node 1, ") == 2
    assert f"{other}/__cluster_metadata-0: the metadata of node 2 goes on to offset 85, and" in text
    assert text.endswith("METADATA CAN BE GIVEN UP by controllers that are behind\n")


def first_batches(data: bytes, count: int) -> bytes:
    position = 0
    for _ in range(count):
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return data[:position]
