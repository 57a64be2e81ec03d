"""Three real brokers, one of which has the directories of a topic that was deleted and created
again meanwhile. Rule: F925."""

import base64
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups
from tests.support.repository import Unpack

TOPIC, FORMER_ID = "orders", "Rm9ybWVyIHRvcGljIGlkIQ"
FORMER = f"{TOPIC}@{FORMER_ID}"
assert len(base64.urlsafe_b64decode(f"{FORMER_ID}==")) == 16


@pytest.fixture
def nodes(unpacked: Unpack, tmp_path: Path) -> Path:
    """The directories of the brokers 11 to 13 and of the controller. Broker 13 was down when the
    topic was made again: its directories have the id of before."""
    copy = tmp_path / "nodes"
    shutil.copytree(unpacked("diverged44.logs"), copy)
    for partition in ("0", "1"):
        metadata = copy / f"node-13/data/{TOPIC}-{partition}/partition.metadata"
        metadata.write_text(f"version: 0\ntopic_id: {FORMER_ID}")
    return copy


def log_dirs(nodes: Path) -> list[str]:
    return [
        *(str(nodes / f"node-{broker}/data") for broker in (11, 12, 13)),
        str(nodes / "node-1/metadata"),
    ]


def run(paths: Sequence[str], command: str, *options: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, [*command.split(), *paths, *options])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("check", 0),
        ("check --topic __consumer_offsets", 0),
        ("dump --limit 1", 0),
        ("find --key none", 1),
        ("get-offsets", 0),
        ("get-offsets --topic __consumer_offsets", 0),
        ("groups --all-groups", 0),
        ("ls", 0),
        ("metadata", 0),
        ("quorum", 0),
        # A broker creates __transaction_state, which the checkpoints name, again without records.
        ("recover", 1),
        ("replicas", 0),
        # The checkpoints name records of __transaction_state that are not there (F940).
        ("txns", 3),
    ],
)
def test_no_command_stops(nodes: Path, command: str, code: int) -> None:
    found, out, err = run(log_dirs(nodes), command)
    assert (found, bool(out)) == (code, command != "find --key none"), err


def test_the_current_topic_is_read_and_the_former_one_by_its_whole_name(
    nodes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths = log_dirs(nodes)
    current = [path for path in paths if "node-13" not in path]
    code, out, _ = run(paths, "get-offsets", "--topic", TOPIC)
    # As if the broker that has the former one was not there.
    assert (code, out) == run(current, "get-offsets", "--topic", TOPIC)[:2]
    assert out and f"topic {TOPIC} was deleted and created again" in caplog.text
    assert FORMER in caplog.text and f"{nodes}/node-13/data/{TOPIC}-0" in caplog.text
    alone = run([paths[2]], "get-offsets", "--topic", TOPIC)[1]
    _, of_former, _ = run(paths, "get-offsets", "--topic", FORMER)
    assert of_former == alone.replace(TOPIC, FORMER) != out
    # All topics are those that have a name.
    assert FORMER not in run(paths, "get-offsets")[1]


def test_every_face_has_both_names(nodes: Path, tmp_path: Path) -> None:
    paths = log_dirs(nodes)
    for command in ("ls", "ls --by partition", "check"):
        assert run(paths, command, "--topic", FORMER)[0] == 0
    _, out, _ = run(paths, "ls")
    assert [line.split()[0] for line in out.splitlines() if line.startswith(TOPIC)] == [
        TOPIC,
        FORMER,
    ]
    # The metadata assigns the current one to the broker, too.
    assert f"assigns to {paths[2]}: {TOPIC}-0, {TOPIC}-1" in out
    dumped = run(paths, "dump", "--topic", FORMER)[1]
    assert {line.split("/")[-2] for line in dumped.splitlines() if "Dumping" in line} == {
        f"{TOPIC}-0",
        f"{TOPIC}-1",
    }
    assert all(f"{nodes}/node-13" in line for line in dumped.splitlines() if "Dumping" in line)
    assert {*ServedCluster(paths).topics} >= {TOPIC, FORMER}
    code, out, _ = run(
        paths, "export", "--format", "parquet", "--output-dir", str(tmp_path / "tables")
    )
    assert code == 0 and FORMER not in out and TOPIC in out
    code, out, _ = run(paths, "report", "--output-dir", str(tmp_path / "page"))
    assert FORMER in (tmp_path / "page" / "report.html").read_text()


def read_paths(paths: Sequence[str], **options: str) -> set[str]:
    """The partition directories that a read of view `records` opens."""
    given = {"paths": str(list(paths)).replace("'", '"'), "view": "records", **options}
    groups = planned_groups(read_options(given))
    return {
        str(Path(read.path).parent)
        for group in groups
        for read in group
        if isinstance(read, SegmentRead)
    }


def test_spark_reads_the_topic_that_is_named(nodes: Path) -> None:
    paths = log_dirs(nodes)
    former = {f"{nodes}/node-13/data/{TOPIC}-{number}" for number in (0, 1)}
    assert read_paths(paths, subscribe=FORMER) == former
    for options in ({}, {"subscribe": TOPIC}, {"subscribePattern": "ord.*"}):
        found = read_paths(paths, **options)
        assert found and not found & former
    assert read_paths(paths, subscribePattern="orders@.*") == former


def test_without_metadata_all_topics_of_the_name_are_told_apart(
    nodes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths = log_dirs(nodes)[:3]
    code, out, _ = run(paths, "get-offsets")
    names = {line.split(":")[0] for line in out.splitlines()} - {"__consumer_offsets"}
    assert code == 0 and FORMER in names and len(names) == 2 and TOPIC not in names
    assert "no metadata of the cluster was read" in caplog.text
    code, _, err = run(paths, "get-offsets", "--topic", TOPIC)
    assert code == 2 and FORMER in err


def test_partitions_that_only_the_former_topic_has_are_its_own(nodes: Path) -> None:
    # It had more partitions: without an id of their own they would pass for the current topic's.
    shutil.copytree(nodes / f"node-13/data/{TOPIC}-1", nodes / f"node-13/data/{TOPIC}-2")
    found = {log.name for log in find_logs(log_dirs(nodes)) if log.name.startswith(TOPIC)}
    assert found == {f"{name}-{number}" for name in (TOPIC, FORMER) for number in (0, 1, 2)} - {
        f"{TOPIC}-2"
    }


def test_what_checkpoints_say_of_a_former_topic_holds_for_it(nodes: Path) -> None:
    logs = find_logs(log_dirs(nodes))
    (former,) = [log for log in logs if log.name == f"{FORMER}-0"]
    marks = former.log_dir.high_watermarks
    assert marks[FORMER, 0] == marks[TOPIC, 0]
    assert former.is_former and not any(log.is_former for log in logs if log.topic == TOPIC)


def test_what_needs_the_metadata_only_does_not_stop_for_a_partition_that_is_there_twice(
    nodes: Path,
) -> None:
    # As after a disk was copied: two directories of broker 12 have orders-0.
    shutil.copytree(nodes / "node-12/data/orders-0", nodes / "copied/orders-0")
    shutil.copy(nodes / "node-12/data/meta.properties", nodes / "copied")
    paths = log_dirs(nodes)
    for command in ("quorum", "metadata"):
        assert run([*paths, str(nodes / "copied")], command) == run(paths, command)
    code, _, err = run([*paths, str(nodes / "copied")], "check")
    assert (code, "partition orders-0 is there twice" in err) == (3, True)
