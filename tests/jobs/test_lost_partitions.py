"""What jobs say of a real broker's partitions after a clean stop, when one has lost all segments
and another its directory. Rule: docs/format.md F76."""

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from jobs import plan_recovery, report, salvage, validate_checksums
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import table
from tests.support.repository import EXAMPLES, ROOT

pytestmark = pytest.mark.deep

EMPTIED, GONE = ("shop.del-records-mid", 0), ("shop.codec-zstd", 0)


def checkpoint(log_dir: Path, name: str) -> Mapping[tuple[str, int], int]:
    return read_offset_checkpoint((log_dir / f"{name}-offset-checkpoint").read_text())


class Disk(NamedTuple):
    """A copy of an example: the offsets that its emptied log has lost, up to the end, and what is
    to be said of the partitions without a directory."""

    log_dir: Path
    first_lost: int
    end: int
    not_there: str


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    copy = tmp_path / "logs"
    shutil.copytree(EXAMPLES / "kafka-4.4", copy)
    for segment in (copy / "shop.del-records-mid-0").glob("*.log"):
        segment.unlink()
    shutil.rmtree(copy / "shop.codec-zstd-0")
    told = checkpoint(copy, "replication")
    # Records were deleted from the log by its user: those are not lost.
    first_lost = checkpoint(copy, "log-start")[EMPTIED]
    return Disk(copy, first_lost, told[EMPTIED], said_of_absent(copy, told))


def said_of_absent(log_dir: Path, told: Iterable[tuple[str, int]]) -> str:
    """The example holds 8 of its broker's 44 partitions; now it is one less."""
    absent = sorted(key for key in told if not (log_dir / f"{key[0]}-{key[1]}").exists())
    assert GONE in absent
    names = ", ".join(f"{topic}-{partition}" for topic, partition in absent[:5])
    return (
        f"missing: {len(absent)} partitions that the checkpoints of {log_dir} name: {names} and "
        f"{len(absent) - 5} more"
    )


def arguments(tmp_path: Path, log_dir: Path) -> list[str]:
    return [str(log_dir), "--output-dir", str(tmp_path / "tables"), "--fail-on-findings"]


def test_the_checksum_job_counts_the_lost_log_and_names_the_lost_partition(
    spark: SparkSession, tmp_path: Path, disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*arguments(tmp_path, disk.log_dir), "--format", "parquet"]
    assert validate_checksums.main(given) == ExitCode.FINDINGS
    out = capsys.readouterr().out.splitlines()
    assert disk.not_there in out
    assert out[-2].startswith("DAMAGED: 1 fault in 0 segments and 1 log without one, ")
    segments = len([*disk.log_dir.glob("*/*.log")])
    assert f"; checked {segments} segments of 6 partitions, " in out[-2]
    (fault,) = table(spark, tmp_path / "tables", "faults").collect()
    assert (fault.topic, fault.kind, fault.severity) == (EMPTIED[0], "missing_end", "error")
    assert fault.file == str(disk.log_dir / "shop.del-records-mid-0")
    assert (fault.base_offset, fault.last_offset) == (disk.first_lost, disk.end - 1)
    rows = table(spark, tmp_path / "tables", "checksum_report")
    assert rows.count() == segments + 1
    (row,) = rows.where("bytes IS NULL").collect()
    assert (row.verdict, row.first_fault, row.first_fault_offset) == (
        *("damaged", "missing_end"),
        disk.first_lost,
    )


def test_the_plan_and_the_salvage_say_so_too(
    spark: SparkSession, tmp_path: Path, disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*arguments(tmp_path, disk.log_dir), "--format", "parquet"]
    assert plan_recovery.main(given) == ExitCode.FINDINGS
    *lines, verdict, _ = capsys.readouterr().out.splitlines()
    assert disk.not_there in lines
    offsets = disk.end - disk.first_lost
    missing = f"MISSING by checkpoints or indexes: {offsets} offsets at the end of 1 partition"
    assert missing in verdict
    assert salvage.main([*given, "--to", str(tmp_path / "new")]) == ExitCode.FINDINGS
    *_, absent, verdict, _ = capsys.readouterr().out.splitlines()
    assert absent == disk.not_there
    absent = f"and {offsets} offsets of which no byte is there"
    assert verdict.endswith(f"; LOST: 0 bytes in 1 range, {absent}")
    (lost,) = table(spark, tmp_path / "tables", "lost_ranges").collect()
    assert (lost.kind, lost.first_offset, lost.last_offset) == (
        "missing_end",
        disk.first_lost,
        disk.end - 1,
    )


def test_the_report_names_both(
    spark: SparkSession, tmp_path: Path, disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    # F940: among what is not there are the records about groups and transactions.
    assert report.main(arguments(tmp_path, disk.log_dir)) == ExitCode.UNREADABLE_INPUT
    out = capsys.readouterr().out.splitlines()
    assert out[2] == "1 damaged range in shop.del-records-mid-0, 0 B of 0 B"
    assert f"also: {disk.not_there}" in out
    page = (tmp_path / "tables" / "report.html").read_text()
    assert f"<li>{disk.not_there}</li>" in page
    strip = re.search(r"shop.del-records-mid-0</bdi><span>(.*?)</ul>", page)
    assert strip is not None
    assert strip[1].startswith("0 B, 0 segments, broker 1, 1 finding<")
    assert 'class="gap"' in strip[1]
    assert f": offsets {disk.first_lost} to {disk.end - 1} are missing: " in strip[1]


def test_where_nothing_is_left_to_check_nothing_is_called_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kafkalog.spark.session.job_session", None)
    log_dir = tmp_path / "logs"
    log_dir.mkdir()
    for path in (EXAMPLES / "kafka-4.4").iterdir():
        if path.is_file():
            shutil.copy(path, log_dir)
    assert validate_checksums.main(arguments(tmp_path, log_dir)) == ExitCode.UNREADABLE_INPUT
    said = capsys.readouterr()
    assert said.out.startswith(f"missing: {len(checkpoint(log_dir, 'replication'))} partitions ")
    assert f"{log_dir}: there is no segment to check" in said.err


def test_jobs_name_a_metadata_snapshot_with_which_no_broker_starts(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F921: a broker of 4.4.0 ended with CorruptRecordException.
    copy = tmp_path / "controller"
    shutil.copytree(ROOT / "examples" / "controller", copy)
    newest = max((copy / "__cluster_metadata-0").glob("*.checkpoint"))
    data = bytearray(newest.read_bytes())
    data[3000] ^= 255
    newest.write_bytes(data)
    given = [*arguments(tmp_path, copy), "--format", "parquet"]
    assert validate_checksums.main(given) == ExitCode.FINDINGS
    verdict = capsys.readouterr().out.splitlines()[-2]
    assert verdict.startswith("DAMAGED: 1 fault in 0 segments and 1 metadata snapshot, ")
    assert "; checked 4 segments of 1 partition, " in verdict
    (fault,) = table(spark, tmp_path / "tables", "faults").collect()
    assert (fault.file, fault.kind, fault.position) == (str(newest), "checksum", 83)
    rows = table(spark, tmp_path / "tables", "checksum_report").collect()
    assert {row.file: row.verdict for row in rows}[str(newest)] == "damaged"
    assert plan_recovery.main(given) == ExitCode.FINDINGS
    assert "NO START of node 1" in capsys.readouterr().out
