"""`kafkalog check` on whole logs of real brokers, and on copies that were damaged by hand."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from tests.support.golden.damaged_variants import FOUND
from tests.support.repository import EXAMPLES, SHOP

Unpacked = Callable[[str], Path]
# Of each sort of damage one in every run; the others are told apart by the same readers.
QUICK = ("bitflip-payload-active", "zero-hole", "middle-segment-missing", "truncated-last-batch")


def run(*arguments: object) -> tuple[int, str, str]:
    given = ["check", *map(str, arguments), "--processes", "1"]
    result = CliRunner().invoke(kafkalog, given)
    return result.exit_code, result.stdout, result.stderr


def findings(*arguments: object) -> tuple[int, list[dict[str, Any]]]:
    code, out, _ = run(*arguments, "--format", "json")
    return code, [json.loads(line) for line in out.splitlines()]


def log_dirs(logs: Path) -> list[Path]:
    return sorted(path.parent for path in logs.rglob("meta.properties"))


@pytest.mark.parametrize("name", ["kafka44", pytest.param("kafka39zk", marks=pytest.mark.deep)])
def test_nothing_is_wrong_with_what_brokers_have_left(unpacked: Unpacked, name: str) -> None:
    code, out, err = run(*log_dirs(unpacked(f"{name}.logs")))
    assert code == 0
    # F1248: their producers chose such times.
    assert all(line.startswith("wrong times: ") for line in err.splitlines())
    assert out.startswith("sound: checked ")
    assert out.endswith("; indexes sound\n")


def without_times(notes: str) -> str:
    """Return notes without those about times, which the records of the fixtures have (F1248)."""
    lines = notes.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("wrong times: "))


def test_of_tiered_storage_the_logs_are_checked(unpacked: Unpacked) -> None:
    # F558
    store = unpacked("tiered43.tiered") / "kafka-tiered-storage"
    code, out, err = run(store)
    assert (code, "sound" in out, "in tiered storage are not checked" in err) == (0, True, True)
    code, out, err = run(store, "--no-indexes")
    assert (code, without_times(err)) == (0, "")
    assert out.startswith("sound: checked 10 segments of 3 partitions")


def test_an_end_that_is_missing_is_missed_where_nothing_left_is_damaged(tmp_path: Path) -> None:
    # F76: by the real broker's checkpoint. The last segment of 5 is cut between two batches, and
    # then goes; and then all others.
    copy = tmp_path / "logs"
    shutil.copytree(EXAMPLES / "kafka-4.4", copy)
    partition = copy / "shop.codec-zstd-0"
    *others, last = sorted(partition.glob("*.log"))
    told = read_offset_checkpoint((copy / "replication-offset-checkpoint").read_text())
    end = told["shop.codec-zstd", 0]
    with last.open("rb") as file:
        length = int.from_bytes(file.read(12)[8:], "big") + 12
        count = int.from_bytes(file.read(length)[45:49], "big")
    first = int(last.stem) + count
    os.truncate(last, length)
    asked = (copy, "--no-indexes")
    for lost in ([], [last], others):
        for path in lost:
            path.unlink()
        if lost:
            first = int(lost[0].stem)
        code, (found,) = findings(*asked)
        assert (code, found["kind"], found["severity"]) == (1, "missing_end", "error")
        assert found["detail"].startswith(f"offsets {first} to {end - 1} are missing: ")
        assert run(*asked)[1].splitlines()[-1].startswith("DAMAGED: 1 fault in ")


def without_last_batches(copy: Path, zeros: int) -> Path:
    """The active segment of a real partition, emptied or overwritten with zeros, beside no
    checkpoint."""
    shutil.copytree(SHOP, copy)
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (copy / name).unlink()
    last = max((copy / "orders-0").glob("*.log"))
    last.write_bytes(bytes(zeros))
    return last


def test_a_log_without_a_segment_is_missed_by_what_lies_beside_it(tmp_path: Path) -> None:
    # F922: the broker's checkpoint says the same, and is removed here.
    copy = tmp_path / "logs"
    shutil.copytree(EXAMPLES / "kafka-4.4", copy)
    replicated = (copy / "replication-offset-checkpoint").read_text()
    end = read_offset_checkpoint(replicated)["shop.tx", 0]
    for path in copy.glob("*-checkpoint"):
        path.unlink()
    for path in (copy / "shop.tx-0").glob("*.log"):
        path.unlink()
    asked = (copy, "--topic", "shop.tx", "--no-indexes")
    code, (found,) = findings(*asked)
    assert (code, found["file"], found["severity"]) == (1, str(copy / "shop.tx-0"), "error")
    assert found["detail"].startswith(f"offsets 0 to {end - 1} are missing: the indexes or ")
    for command in (("recover",), ("salvage", "--to", tmp_path / "new")):
        given = (*command, copy, "--topic", "shop.tx")
        result = CliRunner().invoke(kafkalog, [*map(str, given)])
        assert (result.exit_code, "nothing" in result.stdout) == (1, False)
    for path in (copy / "shop.tx-0").glob("0*"):
        path.unlink()
    code, _, err = run(*asked)
    assert (code, "there is no segment to check" in err) == (3, True)


@pytest.mark.parametrize("zeros", [0, 9569])
def test_an_emptied_active_segment_is_missed_by_its_own_indexes(tmp_path: Path, zeros: int) -> None:
    # F76: kafka-dump-log prints 915 as the last offset of its .timeindex, 901 of its .index.
    copy = tmp_path / "logs"
    last = without_last_batches(copy, zeros)
    asked = (copy, "--topic", "orders", "--no-indexes")
    _, (found,) = findings(*asked)
    assert (found["file"], found["kind"], found["severity"]) == (str(last), "missing_end", "error")
    assert found["detail"] == (
        "offsets 712 to 915 are missing: the indexes or producer snapshots beside the log "
        "say that it went on to 916"
    )
    # A broker that was killed may have cut the log back and not its indexes.
    (copy / ".kafka_cleanshutdown").unlink()
    _, (found,) = findings(*asked)
    assert (found["kind"], found["severity"]) == ("missing_end", "warning")
    # Its producer snapshot was taken at the stop (F922).
    last.with_suffix(".timeindex").unlink()
    _, (found,) = findings(*asked)
    assert found["detail"].startswith("offsets 712 to 915 are missing: ")
    last.with_name(f"{916:020d}.snapshot").unlink()
    _, (found,) = findings(*asked)
    assert found["detail"].startswith("offsets 712 to 901 are missing: ")


def test_an_active_segment_without_its_log_is_missed_by_its_indexes(tmp_path: Path) -> None:
    # F76: kafka-dump-log prints 915 as the last offset of the .timeindex that is left.
    copy = tmp_path / "logs"
    without_last_batches(copy, 0).unlink()
    _, (found,) = findings(copy, "--topic", "orders", "--no-indexes")
    assert found["kind"] == "missing_end"
    assert found["detail"].startswith("offsets 712 to 915 are missing")
    for command in (("recover",), ("salvage", "--to", tmp_path / "new")):
        asked = (*command, copy, "--topic", "orders")
        result = CliRunner().invoke(kafkalog, [*map(str, asked)])
        assert (result.exit_code, "nothing" in result.stdout) == (1, False)


def test_what_a_killed_brokers_indexes_name_is_a_warning(unpacked: Unpacked) -> None:
    # F76: the last of the two entries of the .index is 2663 + 0x88.
    variant = unpacked("unclean.logs") / "variants" / "empty-active-log" / "log-dirs"
    _, (found,) = findings(variant, "--no-indexes")
    assert (found["kind"], found["severity"]) == ("missing_end", "warning")
    assert found["detail"].startswith("offsets 2663 to 2799 are missing: the indexes ")


@pytest.mark.parametrize(
    ("index", "timeindex"),
    [
        pytest.param(b"", b"", id="just rolled"),
        pytest.param(bytes(65536), bytes(65532), id="preallocated"),
        pytest.param(b"\0\0\0\7" * 8, b"", id="entries that do not rise"),
        pytest.param(b"\xff" * 8, b"\xff" * 12, id="an entry below nothing"),
    ],
)
def test_an_active_segment_that_never_had_a_batch_is_sound(
    tmp_path: Path, index: bytes, timeindex: bytes
) -> None:
    # F76, F103
    copy = tmp_path / "logs"
    last = without_last_batches(copy, 0)
    last.with_suffix(".index").write_bytes(index)
    last.with_suffix(".timeindex").write_bytes(timeindex)
    assert findings(copy, "--topic", "orders", "--no-indexes") == (0, [])


def test_partitions_that_only_checkpoints_know_are_named(tmp_path: Path) -> None:
    # The example holds 8 of the 44 partitions of its broker.
    log_dir = EXAMPLES / "kafka-4.4"
    told = read_offset_checkpoint((log_dir / "replication-offset-checkpoint").read_text())
    absent = sorted(key for key in told if not (log_dir / f"{key[0]}-{key[1]}").exists())
    code, _, err = run(log_dir, "--no-indexes")
    assert code == 0
    names = ", ".join(f"{topic}-{partition}" for topic, partition in absent[:5])
    assert without_times(err) == (
        f"missing: {len(absent)} partitions that the checkpoints of {log_dir} name: {names} and "
        f"{len(absent) - 5} more\n"
    )
    assert without_times(run(log_dir, "--no-indexes", "--topic", "shop.codec-zstd")[2]) == ""


def test_logs_without_a_middle_segment_are_not_called_sound(tmp_path: Path) -> None:
    # F73: the broker named segments after their first offsets.
    log = tmp_path / "logs" / "shop.tx-0"
    shutil.copytree(EXAMPLES / "kafka-4.4" / log.name, log)
    _, second, third, *_ = sorted(int(path.stem) for path in log.glob("*.log"))
    assert run(log)[1].startswith("sound: ")
    for path in log.glob(f"{second:020}.*"):
        path.unlink()
    said = f"NOT COMPLETE: {third - second} offsets of shop.tx-0 are in no segment"
    for options in ((), ("--severity", "error"), ("--no-indexes",)):
        code, out, _ = run(log, *options)
        assert out.splitlines()[-1].startswith(f"{said}; what is here is sound, 1 warning")
        assert code == (0 if "error" in options else 1)
    given = ["report", str(log), "--output-dir", str(tmp_path / "page")]
    assert said in CliRunner().invoke(kafkalog, given).output
    assert f"{said}. No damage" in (tmp_path / "page" / "report.html").read_text()


def test_of_a_requested_topic_its_own_partitions_are_missed(tmp_path: Path) -> None:
    copy = tmp_path / "logs"
    shutil.copytree(EXAMPLES / "kafka-4.4", copy)
    shutil.rmtree(copy / "shop.multi-3-part-0-1")
    said = f"missing: 1 partition that the checkpoints of {copy} name: shop.multi-3-part-0-1\n"
    asked = (copy, "--no-indexes", "--topic", "shop.multi-3-part-0")
    assert without_times(run(*asked)[2]) == said
    assert without_times(run(*asked, "--partition", "2")[2]) == ""


def test_a_log_directory_without_any_partition_left_is_not_passed_over(tmp_path: Path) -> None:
    files = [path for path in (EXAMPLES / "kafka-4.4").iterdir() if path.is_file()]
    for path in files:
        shutil.copy(path, tmp_path)
    told = read_offset_checkpoint((tmp_path / "replication-offset-checkpoint").read_text())
    said = f"missing: {len(told)} partitions that the checkpoints of {tmp_path} name: "
    code, out, err = run(tmp_path)
    assert (code, out) == (3, "")
    assert f"{tmp_path}: there is no segment to check; {said}" in err
    code, _, err = run(tmp_path, SHOP, "--no-indexes")
    assert (code, err.startswith(said)) == (0, True)


@pytest.mark.parametrize(
    "name",
    [*QUICK, *(pytest.param(name, marks=pytest.mark.deep) for name in FOUND if name not in QUICK)],
)
def test_every_damage_is_found_where_it_was_done(unpacked: Unpacked, name: str) -> None:
    copy = unpacked("unclean.logs") / "variants" / name / "log-dirs"
    topic = "e.z" if name.startswith("compressed") else "e.w"
    asked = (copy, "--topic", topic, "--no-indexes", "--severity", "information")
    code, found = findings(*asked)
    assert [(each["kind"], each["position"]) for each in found] == FOUND[name]
    assert code == 1


@pytest.mark.parametrize(
    ("name", "file", "kind"),
    [
        ("all-indexes-missing", "00000000000000000000.index", "missing"),
        ("timeindex-garbage", "00000000000000000000.timeindex", "offset"),
        ("snapshot-garbage", "00000000000000002663.snapshot", "version"),
        ("epoch-checkpoint-garbage", "leader-epoch-checkpoint", "checkpoint"),
    ],
)
def test_files_beside_a_log_are_checked(
    unpacked: Unpacked, name: str, file: str, kind: str
) -> None:
    # F130 to F136
    copy = unpacked("unclean.logs") / "variants" / name / "log-dirs"
    code, found = findings(copy)
    assert code == 1
    assert (file, kind) in {(Path(each["file"]).name, each["kind"]) for each in found}
    assert run(copy, "--no-indexes")[0] == 0
    assert run(copy)[1].splitlines()[-1].startswith("indexes: ")


def test_what_the_cleaner_and_retention_have_left_is_not_a_finding(unpacked: Unpacked) -> None:
    # F94: .deleted and .cleaned files have no indexes of their own.
    copy = unpacked("unclean.logs") / "variants" / "swap-and-cleaned-left" / "log-dirs"
    assert run(copy)[0] == 0


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    copy = tmp_path / "shop"
    shutil.copytree(SHOP, copy)
    segment = copy / "orders-0" / f"{0:020d}.log"
    data = bytearray(segment.read_bytes())
    for position in range(5000, 30000, 2500):
        data[position] ^= 0xFF
    segment.write_bytes(data)
    return copy


def test_the_verdict_is_the_last_line_and_findings_a_table(damaged: Path) -> None:
    code, out, err = run(damaged, "--show", 2)
    header, first, second, more, verdict = out.splitlines()
    assert (code, without_times(err)) == (1, "")
    assert header.split() == ["FILE", "POSITION", "LENGTH", "SEVERITY", "KIND", "DETAIL"]
    assert all(f"{0:020d}.log" in line for line in (first, second))
    assert more.startswith("and ")
    assert verdict.startswith("DAMAGED: ")


def test_rows_for_programs_are_on_stdout_and_the_verdict_is_not(damaged: Path) -> None:
    code, out, err = run(damaged, "--format", "csv", "--severity", "error")
    assert (code, out.splitlines()[0]) == (1, "file,position,length,severity,kind,detail")
    assert without_times(err).startswith("DAMAGED: ")


def test_other_partitions_are_sound(damaged: Path) -> None:
    code, out, _ = run(damaged, "--topic", "orders", "--partition", 1)
    assert (code, out.startswith("sound: checked 2 segments of 1 partition,")) == (0, True)


def test_several_processes_find_the_same(damaged: Path) -> None:
    two = CliRunner().invoke(kafkalog, ["check", str(damaged), "--processes", "2"])
    code, out, _ = run(damaged)
    assert (two.exit_code, two.stdout) == (code, out)


def test_nothing_to_check_is_not_sound(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    code, out, err = run(tmp_path)
    assert (code, out, "there is no segment to check" in err) == (3, "", True)


def test_a_topic_that_is_not_there_is_a_wrong_argument() -> None:
    code, _, err = run(SHOP, "--topic", "nothing")
    assert (code, "what the log directories hold: " in err) == (2, True)


def test_findings_lead_to_exit_code_1_unless_turned_off() -> None:
    damaged = EXAMPLES / "damaged"
    assert run(damaged)[0] == 1
    code, out, _ = run(damaged, "--no-fail-on-findings")
    assert (code, out) == (0, run(damaged)[1])
