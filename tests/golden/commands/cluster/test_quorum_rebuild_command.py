"""`kafkalog quorum rebuild` on copies of real controllers' metadata: tests/broker shows that Kafka
starts from it."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.quorum_state import QuorumState
from kafkalog.inspection.metadata.copies import MetadataCopy, metadata_copies
from kafkalog.inspection.metadata.quorum import Quorum
from kafkalog.inspection.metadata.replay import image_at
from kafkalog.messages.catalog import message, topic_family
from kafkalog.messages.message_writer import write_message
from kafkalog.messages.record_writer import write_record_value
from kafkalog.storage.names import CLUSTER_METADATA
from tests.support.messages.metadata_images import have_same_state
from tests.support.repository import ROOT

CONTROLLER = ROOT / "examples" / "controller"
LAST = f"__cluster_metadata-0/{660:020d}.log"
DIRECTORY = "AAECAwQFBgcICQoLDA0ODw"


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, ["quorum", "rebuild", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def the_copy(path: Path) -> MetadataCopy:
    (found,) = metadata_copies([str(path)])
    return found


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CONTROLLER, tmp_path / "controller"))


def test_a_static_quorum_gets_all_records_a_higher_epoch_and_the_new_voters(tmp_path: Path) -> None:
    # F770
    new = tmp_path / "new"
    code, out, _ = run(CONTROLLER, "--voter", f"7@host-7:9093:{DIRECTORY}", "--to", new)
    assert code == 0
    assert "set controller.quorum.voters=7@host-7:9093 on all nodes" in out
    before, after = the_copy(CONTROLLER), the_copy(new)
    assert image_at(after.log).image.tables == image_at(before.log).image.tables
    assert [*after.log.entries(0)] == [*before.log.entries(0)]
    assert (after.node_id, after.cluster_id, after.directory_id) == (
        *(7, before.cluster_id, DIRECTORY),
    )
    assert after.quorum_state == QuorumState(0, None, 3, None, None, (7,))
    names = ("leader-epoch-checkpoint", "partition.metadata")
    for name in names:
        found = [path / "__cluster_metadata-0" / name for path in (CONTROLLER, new)]
        assert found[0].read_text() == found[1].read_text()


def test_a_feature_record_does_not_make_a_static_quorum_dynamic(copy: Path, tmp_path: Path) -> None:
    # F763, F769: a real 4.4.0 starts with this record and keeps its static voters.
    family = topic_family(CLUSTER_METADATA)
    (number,) = (
        each.number for each in family.record_types.values() if each.name == "FeatureLevelRecord"
    )
    level = {"name": "kraft.version", "featureLevel": 1}
    value = write_record_value(CLUSTER_METADATA, number, 0, level)
    with (copy / LAST).open("ab") as log:
        log.write(
            write_batch(
                [Record(707, 1_800_000_000_000, 0, None, value)], BatchFields(leader_epoch=2)
            )
        )
    quorum = Quorum([the_copy(copy)])
    assert (quorum.best.position, quorum.kraft_version) == ((2, 708), 0)
    new = tmp_path / "new"
    code, out, _ = run(copy, "--voter", f"7@host-7:9093:{DIRECTORY}", "--to", new)
    assert code == 0
    assert "set controller.quorum.voters=7@host-7:9093 on all nodes" in out
    assert the_copy(new).quorum_state == QuorumState(0, None, 3, None, None, (7,))


def test_a_dynamic_quorum_gets_a_record_with_the_new_voters(copy: Path, tmp_path: Path) -> None:
    # F769, F770
    levels = {"minSupportedVersion": 0, "maxSupportedVersion": 1}
    ends = [{"name": "INTERNAL", "host": "old", "port": 9093}]
    voters = [
        {
            "voterId": each,
            "voterDirectoryId": f"AAAAAAAAAAAAAAAAAAAAd{letter}",
            "endpoints": ends,
            "kRaftVersionFeature": levels,
        }
        for each, letter in ((1, "A"), (2, "Q"), (3, "g"))
    ]
    values = [
        write_message(message("KRaftVersionRecord"), 0, {"version": 0, "kRaftVersion": 1}),
        write_message(message("VotersRecord"), 0, {"version": 0, "voters": voters}),
    ]
    records = [
        Record(707 + number, 1795246966934, 0, bytes((0, 0, 0, 5 + number)), value)
        for number, value in enumerate(values)
    ]
    with (copy / LAST).open("ab") as log:
        log.write(write_batch(records, BatchFields(leader_epoch=2, is_control=True)))
    assert len(Quorum([the_copy(copy)]).voters) == 3
    new = tmp_path / "new"
    code, out, _ = run(copy, "--voter", f"1@host-1:9093:{DIRECTORY}", "--to", new)
    assert code == 0
    assert "no majority of the old voters has these records" in out
    assert "set controller.quorum.bootstrap.servers=host-1:9093 on all nodes" in out
    after = Quorum([the_copy(new)])
    ((voter_id, directory_id, places),) = after.voters
    assert (voter_id, directory_id, places) == (1, DIRECTORY, ("INTERNAL://host-1:9093",))
    assert after.best.position == (3, 710)
    assert after.best.quorum_state == QuorumState(1, None, 3, None, "A" * 22, ())
    code, _, err = run(copy, "--node", 1, "--voter", "1@h:1", "--voter", "2@h:2")
    assert code == 2 and "2 without a directory" in err


def test_what_is_damaged_is_left_out(copy: Path, tmp_path: Path) -> None:
    for end in ("0301", "0635"):
        (snapshot,) = copy.rglob(f"*{end}-*.checkpoint")
        snapshot.write_bytes(snapshot.read_bytes()[:-20])
    data = bytearray((copy / LAST).read_bytes())
    data[2500] ^= 1
    (copy / LAST).write_bytes(data)
    early = copy / "__cluster_metadata-0" / f"{218:020d}.log"
    data = bytearray(early.read_bytes())
    data[10636 + 70] ^= 1
    early.write_bytes(data)
    new = tmp_path / "new"
    code, out, _ = run(copy, "--voter", "1@host-1:9093", "--to", new)
    assert code == 0 and out.count("left out: ") == 3
    assert "may not start with its damaged copy" not in out
    # Not so for another node, which keeps its copy.
    code, out, _ = run(copy, "--voter", "2@host-2:9093")
    assert f"node 1 may not start with its damaged copy: move {copy}/__cluster_metadata-0 " in out
    after = the_copy(new)
    # From the last whole snapshot up to the damaged batch with offset 705.
    assert (after.log.start_offset, after.position) == (595, (2, 705))
    assert [each.end_offset for each in after.log.snapshots] == [595]
    assert after.damages == []
    assert have_same_state(image_at(after.log).image, image_at(the_copy(copy).log).image)


def test_a_damaged_snapshot_in_front_of_a_whole_one_is_left_out(copy: Path, tmp_path: Path) -> None:
    (snapshot,) = copy.rglob("*0301-*.checkpoint")
    snapshot.write_bytes(b"")
    code, out, _ = run(copy, "--voter", "1@host-1:9093", "--to", tmp_path / "new")
    assert code == 0 and "snapshots that end at 0, 595, 635" in out


def test_nothing_is_written_without_a_target_nor_into_an_existing_one(
    copy: Path, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    code, out, _ = run(copy, "--voter", "1@host-1:9093")
    assert code == 0 and "nothing is written without --to DIR" in out
    code, _, err = run(copy, "--voter", "1@host-1:9093", "--to", copy)
    assert code == 3 and str(copy) in err
    assert sorted(tmp_path.rglob("*")) == before


def test_the_plan_is_a_row_for_programs(copy: Path) -> None:
    code, out, err = run(copy, "--voter", "1@host-1:9093", "--format", "json")
    row = json.loads(out)
    assert code == 0 and "nothing is written without --to DIR" in err
    assert (row["start_offset"], row["end_offset"], row["last_epoch"]) == (0, 707, 2)
    assert (row["snapshots"], row["kraft_version"], row["epoch"]) == ([0, 301, 595, 635], 0, 3)


def test_copies_that_contradict_each_other_below_a_snapshot_are_refused(
    copy: Path, tmp_path: Path
) -> None:
    # F771
    other = Path(shutil.copytree(copy, tmp_path / "other"))
    properties = other / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=1", "node.id=2"))
    log = other / "__cluster_metadata-0" / f"{458:020d}.log"
    announcement = (copy / "__cluster_metadata-0" / f"{218:020d}.log").read_bytes()[10545:10636]
    batch = bytearray(announcement)
    batch[0:8], batch[12:16] = (458).to_bytes(8, "big"), (9).to_bytes(4, "big")
    log.write_bytes(bytes(batch))
    for path in (other / LAST, *other.rglob("*0[56]??-*.checkpoint")):
        path.unlink()
    code, _, err = run(copy, other, "--voter", "1@host-1:9093")
    assert code == 3
    assert "diverge at offset 458, below a snapshot, which ends at 635" in err
    assert "leave out the copy that is not to be believed" in err


@pytest.mark.parametrize(
    "options",
    [
        ("--voter", "1@host"),
        ("--voter", "host:9093"),
        ("--voter", "1@host:70000"),
        ("--voter", "1@h:1", "--voter", "1@h:2"),
        ("--voter", "1@h:1", "--voter", "2@h:2"),
        ("--voter", "1@h:1", "--node", "2"),
        ("--voter", "1@h:1", "--feature", "metadata.version"),
        ("--voter", "1@h:1", "--feature", "metadata.version=40000"),
        (),
    ],
)
def test_voters_that_cannot_be_are_refused(options: tuple[str, ...]) -> None:
    code, out, _ = run(CONTROLLER, *options)
    assert (code, out) == (2, "")
