"""What README and tutorials show is what happens."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kafkalog
from tests.docs.shown_commands import Reader, Shown, lines_to_copy, pattern_of, shown_in
from tests.support.jobs.job_runs import needs_delta
from tests.support.logs.log_dirs import UNIQUE
from tests.support.repository import ROOT, Unpack

README = ROOT / "README.md"
PAGES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.md")])
# Those that show what is printed; of the others Python is about the reader's own session.
SHOWING = [
    path for path in PAGES if "```console" in path.read_text() or path.stem == "from-spark-kafka"
]
# Elsewhere Python speaks of brokers, object stores, tables or records that only the reader has.
PYTHON_RUNS = ("jobs", "lag", "options", "zookeeper")
# Its topics and schemas are in tests/jobs/tables/test_state_decoded.py.
COPIED = [
    path
    for path in PAGES
    if path.stem in PYTHON_RUNS
    or (path.stem != "decoding" and not all(shown.is_python for shown in lines_to_copy(path)))
]
OWN_FILES = {
    "server.properties": "log.retention.hours=168\n",
    "topics.json": '{"orders": {"retention.ms": "3600000"}}',
    "topics.yaml": "topics: {orders: {partition_by: [day]}}",
}


def names(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def follow(document: Path, reader: Reader) -> None:
    """Do what the document shows, and compare what is printed with what it says."""
    for shown in shown_in(document):
        told = reader.does(shown)
        if shown.printed is not None:
            wanted = pattern_of(shown.printed)
            assert wanted.fullmatch(told.rstrip("\n") + "\n" if told.strip() else ""), (
                f"{names(document)}:{shown.line}: {shown.text}\nprints\n{told}"
            )
    reader.ends()


@pytest.mark.spark
@needs_delta
def test_what_the_readme_shows_is_what_happens(spark: SparkSession, tmp_path: Path) -> None:
    follow(README, Reader(spark, tmp_path))


@pytest.mark.spark
@pytest.mark.deep
@needs_delta
@pytest.mark.parametrize("document", SHOWING, ids=names)
def test_what_a_document_shows_is_what_happens(
    document: Path, spark: SparkSession, tmp_path: Path
) -> None:
    follow(document, Reader(spark, tmp_path))


@pytest.fixture(scope="module")
def own_paths(unpacked: Unpack, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """A line with directories of the project in place of those that a reader has."""
    folder = tmp_path_factory.mktemp("own")
    for name, text in OWN_FILES.items():
        (folder / name).write_text(text)
    week = ROOT / "examples" / "shop-week"
    deleted = Path(shutil.copytree(week, folder / "deleted"))
    for partition in deleted.glob("orders-*"):
        partition.rename(f"{partition}.{UNIQUE}-delete")
    ensemble = unpacked("kafka39zk.zookeeper") / "zookeeper-live"
    # Clusters are never mixed: with ZooKeeper's files go the logs of the same.
    of_ensemble = unpacked("kafka39zk.logs") / "log-dirs"
    disks = unpacked("restore44.logs") / "snapshots"
    kept = unpacked("positions44.logs")
    logs_with = {True: of_ensemble / "*", False: week}
    each_log_dir = " ".join(f"--log-dir {each}" for each in sorted(of_ensemble.iterdir()))

    def replaced(line: str) -> str:
        stands_for = {
            "positions /var/lib/kafka/data": f"positions {kept / 'log-dirs'}",
            "/srv/spark/checkpoints/orders /var/lib/kafka/data": "/srv/spark/checkpoints/orders "
            f"{kept / 'log-dirs'}",
            "/srv/spark/checkpoints/orders": kept / "outside" / "late" / "checkpoint",
            "/srv/lake/orders": kept / "outside" / "early" / "checkpoint",
            "--group word-count": "--group billing",
            "my-connect-offsets": "mm2-offsets.copy.internal",
            "--log-dir /var/lib/kafka/data": each_log_dir,
            "/var/lib/zookeeper": ensemble,
            "/backup/zookeeper": ensemble,
            "/var/lib/kafka/data": logs_with["zookeeper" in line],
            "/var/lib/kafka/metadata": ROOT / "examples" / "controller",
            "/mnt/copy/kafka-logs": week,
            "/mnt/broker1/kafka-logs": week,
            "/mnt/broker2/kafka-logs": ROOT / "examples" / "log-dirs" / "kafka-4.4",
            **{f"/snap/b{number}": disks / f"node{number}" / "data" for number in (1, 2, 3)},
            "/snap/other/metadata": disks / "node1" / "data",
            "--topic orders --into": "--topic events --into",
            "2026-11-20T14:29:00Z": "2026-11-25T19:48:40Z",
            **{f"/snapshots/{day}/kafka": week for day in ("monday", "tuesday")},
            **{f"'/snapshots/{day}/*'": week for day in ("monday", "tuesday")},
            "/mnt/damaged/kafka-logs": ROOT / "examples" / "log-dirs" / "damaged",
            "/mnt/deleted/kafka-logs": deleted,
            " TOPIC_ID ": " AAAAAAAAAAAAAAAAAAAAAQ ",
            **{f" {name}": f" {folder / name}" for name in OWN_FILES},
        }
        for path, place in stands_for.items():
            line = line.replace(path, str(place))
        return line

    return replaced


@pytest.mark.spark
@pytest.mark.deep
@pytest.mark.timeout(900)  # the lag of a week takes five minutes on a machine with other work
@needs_delta
@pytest.mark.parametrize("document", COPIED, ids=names)
def test_a_line_to_copy_runs(
    document: Path, own_paths: Callable[[str], str], spark: SparkSession, tmp_path: Path
) -> None:
    week = str(ROOT / "examples" / "shop-week")
    records = kafkalog.read(spark, week)
    names_there = {"log_dir": week, "records": records, "kafkalog": kafkalog}
    reader = Reader(spark, tmp_path, own_paths, **names_there)
    for shown in lines_to_copy(document):
        if not shown.is_python or document.stem in PYTHON_RUNS:
            reader.does(shown)
            code = reader.does(Shown(shown.line, False, "echo $?", None))
            assert code in ("0\n", "1\n"), f"{names(document)}:{shown.line}: {shown.text}"
    spark.conf.unset("spark.sql.pyspark.worker.logging.enabled")  # which docs/options.md sets


def test_commands_and_what_they_print_are_found(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text(
        "# A\n```console\n$ one \\\n  two\nthree\n...\n$ echo $?\n1\n```\n"
        "```python\nprint(4)\n```\n\n```text\n4\n```\n```\nnot run\n```\n"
    )
    assert shown_in(document) == [
        Shown(3, False, "one    two", "three\n...\n"),
        Shown(7, False, "echo $?", "1\n"),
        Shown(11, True, "print(4)\n", "4\n"),
    ]


@pytest.mark.parametrize(
    ("printed", "told", "matches"),
    [
        ("one\ntwo\n", "one\ntwo\n", True),
        ("one\n...\n", "one\ntwo\nthree\n", True),
        ("one\n...\n", "one\n", True),
        ("a … c\n", "a b c\n", True),
        ("a … c\n", "a b\nc\n", False),
        ("one\n", "one\ntwo\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_dots_stand_for_what_a_document_leaves_out(printed: str, told: str, matches: bool) -> None:
    assert (pattern_of(printed).fullmatch(told) is not None) is matches


def test_an_error_has_to_be_asked_for(tmp_path: Path) -> None:
    reader = Reader(None, tmp_path)
    reader.does(Shown(1, False, "exit 3", None))
    with pytest.raises(AssertionError, match="ended with 3"):
        reader.does(Shown(2, False, "true", None))
    assert reader.does(Shown(3, False, "echo $?", None)) == "3\n"
    reader.ends()
