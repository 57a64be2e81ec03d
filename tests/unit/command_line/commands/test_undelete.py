"""`kafkalog undelete`: what brokers have marked as deleted or stray comes back under its own name.
F92, F94, F197."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.format.side_files.partition_metadata import read_topic_id, write_topic_id
from tests.support.logs.log_dirs import UNIQUE, add_meta_properties, log_name
from tests.support.logs.samples import batch
from tests.support.repository import ROOT
from tests.support.spark.kafka_logs import write_log

EXAMPLE = ROOT / "examples" / "log-dirs" / "kafka-4.4"
LONGEST = "o" * 249  # as long as a topic's name can be
ANOTHER_ID = "BBBBBBBBBBBBBBBBBBBBBQ"


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(kafkalog, [*map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def rows(*arguments: object) -> list[dict[str, Any]]:
    _, out, _ = run("undelete", *arguments, "--format", "json")
    return [json.loads(line) for line in out.splitlines()]


def records(log_dir: Path, topic: str) -> str:
    """Every record of a topic, as dump shows it, without the places of the files."""
    _, out, _ = run("dump", log_dir, "--topic", topic, "--deep", "--format", "csv")
    return out.replace(str(log_dir), "")


def state(directory: Path) -> dict[str, tuple[int, int]]:
    """Names, sizes and times of all files."""
    return {
        str(path.relative_to(directory)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in directory.rglob("*")
    }


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A copy of a real broker's log directory."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "logs"))


def mark(partition: Path, ending: str = "delete", unique: str = UNIQUE) -> Path:
    """Rename a partition's directory as a broker does."""
    return partition.rename(f"{partition}.{unique}-{ending}")


@pytest.mark.parametrize("ending", ["delete", "stray"])
def test_a_topic_that_was_deleted_comes_back_with_all_its_records(
    ending: str, log_dir: Path, tmp_path: Path
) -> None:
    topic, target = "shop.tx", tmp_path / "new"
    whole = records(log_dir, topic)
    assert whole.count("\n") > 400
    mark(log_dir / f"{topic}-0", ending)
    before = state(log_dir)
    code, out, _ = run("undelete", log_dir, "--topic", topic, "--to", target)
    assert (code, "1 partition of shop.tx with 4 segments" in out) == (0, True)
    assert records(target, topic) == whole
    code, out, _ = run("check", target)
    assert (code, out.startswith("sound: checked 4 segments")) == (0, True)
    assert state(log_dir) == before
    names = {path.name for path in target.iterdir()}
    assert names == {"meta.properties", f"{topic}-0"}
    ids = [(path / f"{topic}-0" / "partition.metadata") for path in (EXAMPLE, target)]
    assert read_topic_id(ids[0].read_text()) == read_topic_id(ids[1].read_text())


def test_a_topic_whose_name_was_cut_short_gets_it_back(tmp_path: Path) -> None:
    # F94: the whole name has 255 bytes at most.
    source, ending = tmp_path / "logs", f"-0.{UNIQUE}-delete"
    cut = LONGEST[: 255 - len(ending)]
    write_log(source, f"{cut}{ending}", {0: [batch(0)]})
    target = tmp_path / "new"
    assert run("undelete", source, "--topic", LONGEST, "--to", target)[0] == 0
    assert [path.name for path in target.iterdir()] == [f"{LONGEST}-0"]
    code, _, err = run("undelete", source, "--topic", cut[:-1], "--to", tmp_path / "other")
    assert (code, f"deleted or set aside in {source}: " in err) == (2, True)


def test_of_several_incarnations_one_is_chosen(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "new"
    for number, topic_id in enumerate((ANOTHER_ID, None)):
        partition = write_log(source, "orders-0", {0: [batch(0)] * (number + 1)})
        if topic_id is not None:
            (partition / "partition.metadata").write_text(write_topic_id(topic_id))
        mark(partition, unique=str(number) * 32)
    asked = ("undelete", source, "--topic", "orders", "--to", target)
    code, _, err = run(*asked)
    assert (code, target.exists()) == (2, False)
    assert f"{ANOTHER_ID} (orders-0.{'0' * 32}-delete)" in err
    assert "AAAAAAAAAAAAAAAAAAAAAQ (orders-0.1" in err
    assert run(*asked, "--topic-id", ANOTHER_ID)[0] == 0
    assert (target / "orders-0" / log_name(0)).read_bytes() == batch(0)


def test_two_directories_of_one_partition_are_not_mixed(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "new"
    marked = [
        mark(write_log(source, "orders-0", {0: [batch(0)]}), ending, unique=unique * 32)
        for ending, unique in (("delete", "a"), ("stray", "b"))
    ]
    code, _, err = run("undelete", source, "--topic", "orders", "--to", target)
    assert (code, all(str(path) in err for path in marked)) == (3, True)
    (row,) = rows(marked[1], "--topic", "orders", "--to", target)
    assert (row["source"], row["topic"], row["partition"]) == (str(marked[1]), "orders", 0)


def delete_segments(partition: Path, *bases: int) -> None:
    """Rename the files of segments as retention does."""
    for base in bases:
        for path in partition.glob(f"{base:020d}.*"):
            path.rename(f"{path}.deleted")


def test_segments_that_retention_deleted_come_back(tmp_path: Path) -> None:
    source, target = tmp_path / "logs", tmp_path / "new"
    add_meta_properties(source)
    partition = write_log(source, "orders-0", {base: [batch(base)] for base in (0, 3, 6)})
    write_log(source, "orders-1", {0: [batch(0)]})
    whole = records(source, "orders")
    delete_segments(partition, 0, 3)
    (row,) = rows(source, "--topic", "orders", "--to", target)
    assert (row["segments"], row["deleted_segments"], row["left_out"]) == (3, 2, [])
    assert (row["partition"], row["start_offset"], row["end_offset"]) == (0, 0, 9)
    assert set(whole.splitlines()) >= set(records(target, "orders").splitlines())
    assert run("check", target)[1].startswith("sound: checked 3 segments")


def test_segments_whose_offsets_are_there_again_stay_away(tmp_path: Path) -> None:
    # A follower cut its log at 3, and appended other records; or the cleaner wrote 3 again.
    source, target = tmp_path / "logs", tmp_path / "new"
    partition = write_log(source, "orders-0", {base: [batch(base)] for base in (0, 4, 9)})
    delete_segments(partition, 0, 4)
    for name, data in ((log_name(3), batch(3)), (log_name(7), batch(7))):
        (partition / name).write_bytes(data)
    (partition / log_name(9)).unlink()
    code, out, _ = run("undelete", source, "--topic", "orders", "--to", target)
    words = f"{log_name(4)}.deleted: its offsets 4 to 6 overlap those of {log_name(3)}"
    assert (code, words in out) == (1, True)
    logs = sorted(path.name for path in (target / "orders-0").glob("*.log"))
    assert logs == [log_name(0), log_name(3), log_name(7)]


def test_of_two_snapshots_at_an_offset_the_one_that_is_not_deleted_comes_along(
    tmp_path: Path,
) -> None:
    # A broker writes one at the end of a log, where the segment that was deleted began.
    source, target = tmp_path / "logs", tmp_path / "new"
    partition = write_log(source, "orders-0", {base: [batch(base)] for base in (0, 3)})
    snapshot = f"{3:020d}.snapshot"
    (partition / snapshot).write_bytes(b"deleted")
    delete_segments(partition, 3)
    (partition / snapshot).write_bytes(b"live")
    (row,) = rows(source, "--topic", "orders", "--to", target)
    assert (row["deleted_segments"], row["left_out"]) == (1, [])
    assert (target / "orders-0" / snapshot).read_bytes() == b"live"


def test_a_deleted_segment_without_a_batch_is_called_empty_only_where_it_is(tmp_path: Path) -> None:
    source = tmp_path / "logs"
    partition = write_log(source, "orders-0", {base: [batch(base)] for base in (0, 3, 6)})
    delete_segments(partition, 3, 6)
    empty, zeros = (partition / f"{log_name(base)}.deleted" for base in (3, 6))
    empty.write_bytes(b"")
    zeros.write_bytes(bytes(1000))
    (row,) = rows(source, "--topic", "orders", "--to", tmp_path / "new")
    assert row["left_out"] == [f"{empty}: it is empty", f"{zeros}: no batch in it can be read"]


def test_one_partition_can_be_asked_for(log_dir: Path, tmp_path: Path) -> None:
    topic = "shop.multi-3-part-0"
    for partition in range(3):
        mark(log_dir / f"{topic}-{partition}", unique=f"{partition}" * 32)
    asked = ("undelete", log_dir, "--topic", topic, "--to", tmp_path / "new", "--partition")
    assert run(*asked, 7)[0] == 2
    assert run(*asked, 1)[0] == 0
    assert (tmp_path / "new" / f"{topic}-1").is_dir()
    assert len([path for path in (tmp_path / "new").iterdir() if path.is_dir()]) == 1


def test_the_id_of_a_topic_that_was_made_again_can_be_given(log_dir: Path, tmp_path: Path) -> None:
    # F109: a broker of KRaft sets aside what has another id than its topic.
    mark(log_dir / "shop.tx-0")
    asked = ("undelete", log_dir, "--topic", "shop.tx", "--to", tmp_path / "new")
    assert run(*asked, "--new-topic-id", "nonsense")[0] == 2
    assert run(*asked, "--new-topic-id", ANOTHER_ID)[0] == 0
    text = (tmp_path / "new" / "shop.tx-0" / "partition.metadata").read_text()
    assert read_topic_id(text) == ANOTHER_ID


def test_nothing_is_written_into_the_log_directory(log_dir: Path) -> None:
    mark(log_dir / "shop.tx-0")
    before = state(log_dir)
    code, _, err = run("undelete", log_dir, "--topic", "shop.tx", "--to", log_dir / "new")
    assert (code, "a directory outside of" in err) == (2, True)
    assert state(log_dir) == before


def test_a_topic_of_which_nothing_is_left_is_reported_with_those_that_are(
    log_dir: Path, tmp_path: Path
) -> None:
    mark(log_dir / "shop.tx-0")
    code, _, err = run("undelete", log_dir, "--topic", "shop.txt", "--to", tmp_path / "new")
    assert (code, "did you mean shop.tx?" in err) == (2, True)


def test_whoever_asks_for_a_deleted_topic_hears_how_it_comes_back(log_dir: Path) -> None:
    marked = mark(log_dir / "shop.tx-0")
    for command in ("check", "ls", "dump"):
        code, _, err = run(command, log_dir, "--topic", "shop.tx")
        assert code in (2, 3), command
        assert marked.name in err, command
        assert f"kafkalog undelete {log_dir} --topic shop.tx --to DIR" in err, command


def test_the_command_that_brings_it_back_is_quoted_for_a_shell(
    log_dir: Path, tmp_path: Path
) -> None:
    mark(log_dir / "shop.tx-0")
    other = log_dir.rename(tmp_path / "old disk")
    _, _, err = run("ls", other, "--topic", "shop.tx")
    assert f"kafkalog undelete '{other}' --topic shop.tx --to DIR" in err


def test_several_topics_come_back_together(log_dir: Path, tmp_path: Path) -> None:
    topics, target = ("shop.tx", "shop.codec-zstd"), tmp_path / "new"
    whole = {topic: records(log_dir, topic) for topic in topics}
    for topic in topics:
        mark(log_dir / f"{topic}-0")
    given = [text for topic in topics for text in ("--topic", topic)]
    code, out, _ = run("undelete", log_dir, *given, "--to", target)
    assert (code, "2 partitions of shop.tx, shop.codec-zstd" in out) == (0, True)
    assert {topic: records(target, topic) for topic in topics} == whole
    _, _, err = run("undelete", log_dir, *given, "--to", tmp_path / "x", "--topic-id", ANOTHER_ID)
    assert "--topic-id cannot be used with several --topic" in err
