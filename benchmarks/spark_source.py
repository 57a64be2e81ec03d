"""kafkalog's Spark source beside Spark's own Kafka source: `python -m benchmarks.spark_source`.

A real broker serves topics that Java's producer filled; both sources read the same records in one
session of local[2], in turn: one from the broker, one from its log directory. Before anything is
timed their rows are compared. Linux only; needs Java and Maven. The topics are kept for the next
time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.inputs.broker_inputs import BrokerMissingError
from benchmarks.inputs.broker_topics import Topic, broker_with
from benchmarks.inputs.wanted import RECORD_SIZES
from benchmarks.measuring.processes import part_output, submit_arguments
from benchmarks.measuring.report import inputs_argument, load, machine, progress, table

_PROJECT = Path(__file__).parent.parent
_CODECS = ("none", "zstd", "lz4")
_QUERIES = {
    "full_rows": "all rows to nowhere",
    "to_parquet": "all rows to Parquet",
    "count_by_partition": "count by partition",
    "offsets_and_timestamps": "offset and timestamp",
    "time_window": "1 % of the time",
    "time_options": "1 % by startingTimestamp and endingTimestamp",
}
_ONCE = ("to_parquet",)  # what takes long beside all else
_COLUMNS = (
    "topic",
    "query",
    "Kafka source s",
    "kafkalog s",
    "times as fast",
    "to reach",
    "reached",
    "Kafka source, processor s",
    "broker, processor s",
    "kafkalog, processor s",
)
# How many times as fast kafkalog has to be.
_TARGETS = {
    "to_parquet": 1.0,
    "count_by_partition": 10.0,
    "offsets_and_timestamps": 10.0,
    "time_window": 10.0,
}
_FULL_ROWS = {("none", 1024): 5.0, ("zstd", 1024): 3.0, ("lz4", 1024): 3.0}
_SMALL_RECORDS = 4.0
_PARQUET_TARGET = 1.5  # how many times as long as reading Parquet kafkalog may take

_Figures = Mapping[str, Sequence[float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report. The status says nothing about targets."""
    options = _options(arguments)
    if options.part:
        _run_part(options)
        return 0
    topics = _topics(options)
    options.inputs.mkdir(parents=True, exist_ok=True)
    before = load()
    try:
        with broker_with(topics, options.inputs.resolve(), progress) as server:
            place = {
                "bootstrap": server.bootstrap,
                "broker_pid": server.pid,
                "log_dir": str(server.log_dir),
            }
            measured = _measured(options, place)
    except BrokerMissingError as error:
        print(f"no real broker here: {error}", file=sys.stderr)
        return 1
    _report(topics, measured, before)
    return 0


def _topics(options: argparse.Namespace) -> list[Topic]:
    size = int(options.size * 2**20)
    return [
        Topic(codec, record, size, options.partitions)
        for record in options.record_sizes
        for codec in options.codecs
    ]


def _measured(options: argparse.Namespace, place: Mapping[str, object]) -> dict[str, object]:
    """All figures, of a process of its own. Raises CalledProcessError where that fails."""
    from tests.support.broker.class_paths import class_path

    jars = class_path("spark_kafka").replace(os.pathsep, ",")
    command = [sys.executable, "-m", "benchmarks.spark_source", "--part", json.dumps(place)]
    command += ["--size", str(options.size), "--rounds", str(options.rounds)]
    command += ["--partitions", str(options.partitions)]
    command += ["--codecs", ",".join(options.codecs), "--queries", ",".join(options.queries)]
    command += ["--record-sizes", ",".join(map(str, options.record_sizes))]
    found: dict[str, object]
    found, _ = part_output(command, submit_arguments(jars=jars))
    return found


def _run_part(options: argparse.Namespace) -> None:
    from benchmarks.spark.spark_queries import Contest, Place, empty_source
    from kafkalog.spark.session import job_session

    given = json.loads(options.part)
    found: dict[str, object] = {}
    with (
        tempfile.TemporaryDirectory(dir=_PROJECT / "build") as scratch,
        job_session("kafkalog beside Kafka's source", with_delta=False) as spark,
    ):
        place = Place(
            given["bootstrap"], given["broker_pid"], Path(given["log_dir"]), Path(scratch)
        )
        for topic in _topics(options):
            contest = Contest(spark, place, topic)
            progress(f"comparing {topic.label}: {contest.check_rows():,} records are equal")
            for query in options.queries:
                timed = contest.run(query, 1 if query in _ONCE else options.rounds)
                figures = {name: taken.medians() for name, taken in timed.items()}
                progress(f"{topic.label}, {_QUERIES[query]}: {figures}")
                found[f"{topic.name} {query}"] = figures
        found["empty"] = empty_source(spark, place, options.rounds).medians()
    print(json.dumps(found))


def _report(topics: Sequence[Topic], measured: Mapping[str, object], before: str) -> None:
    on = machine(("kafkalog", "pyspark", "pyarrow", "numba"), "all")
    print(f"{on}; {before} before, {load()} after")
    size, partitions = topics[0].size / 2**20, topics[0].partitions
    print(f"values of a topic: {size:,.0f} MiB; partitions: {partitions}; medians\n")
    rows, beside_parquet = [], []
    for topic in topics:
        for query in _QUERIES:
            figures = measured.get(f"{topic.name} {query}")
            if isinstance(figures, dict):
                rows.append(_row(topic, query, figures))
                if "parquet" in figures:
                    beside_parquet.append(_parquet_row(topic, figures))
    print(table(_COLUMNS, rows))
    print("\nAll rows to nowhere, beside the same rows in Parquet of the same codec, and beside a")
    print("Python source that has as many rows in memory, which is what Spark takes for any:\n")
    header = ("topic", "Parquet s", "kafkalog s", "times as long", "at most", "reached")
    rows_in_memory = ("rows in memory s", "processor s", "kafkalog, processor s")
    print(table((*header, *rows_in_memory), beside_parquet, left=1))
    empty = measured["empty"]
    if isinstance(empty, list):
        print(f"\nA read of a log without records, as part of each of kafkalog's: {empty[0]:.2f} s")


def _row(
    topic: Topic, query: str, figures: _Figures | dict[str, Sequence[float]]
) -> tuple[str, ...]:
    kafka, ours = figures["kafka"], figures["kafkalog"]
    faster = kafka[0] / ours[0]
    target = _target(topic, query)
    return (
        topic.label,
        _QUERIES[query],
        f"{kafka[0]:.2f}",
        f"{ours[0]:.2f}",
        f"{faster:.1f}",
        "" if target is None else f"{target:g}",
        "" if target is None else "yes" if faster >= target else "no",
        f"{kafka[1]:.1f}",
        f"{kafka[2]:.1f}",
        f"{ours[1]:.1f}",
    )


def _target(topic: Topic, query: str) -> float | None:
    if query != "full_rows":
        return _TARGETS.get(query)
    return _FULL_ROWS.get((topic.codec, topic.record_size), _SMALL_RECORDS)


def _parquet_row(topic: Topic, figures: _Figures | dict[str, Sequence[float]]) -> tuple[str, ...]:
    theirs, ours, prebuilt = figures["parquet"], figures["kafkalog"], figures["prebuilt"]
    is_reached = ours[0] / theirs[0] <= _PARQUET_TARGET
    return (
        topic.label,
        f"{theirs[0]:.2f}",
        f"{ours[0]:.2f}",
        f"{ours[0] / theirs[0]:.2f}",
        f"{_PARQUET_TARGET:g}",
        "yes" if is_reached else "no",
        f"{prebuilt[0]:.2f}",
        f"{prebuilt[1]:.1f}",
        f"{ours[1]:.1f}",
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_source", description=__doc__)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument(
        "--size",
        type=float,
        default=2048,
        metavar="MIB",
        help="values in each topic (default: %(default)s)",
    )
    parser.add_argument(
        "--partitions",
        type=int,
        default=1,
        help="of each topic: tasks that Spark's Kafka source reads it with (default: %(default)s)",
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="turns that each takes (default: %(default)s)"
    )
    parser.add_argument(
        "--codecs",
        type=lambda text: text.split(","),
        default=list(_CODECS),
        metavar="LIST",
        help=f"the producers' codecs (default: {','.join(_CODECS)})",
    )
    parser.add_argument(
        "--record-sizes",
        type=lambda text: [int(number) for number in text.split(",")],
        default=list(RECORD_SIZES),
        metavar="LIST",
        help=f"bytes of a value (default: {','.join(map(str, RECORD_SIZES))})",
    )
    parser.add_argument(
        "--queries",
        type=lambda text: text.split(","),
        default=list(_QUERIES),
        metavar="LIST",
        help=f"of {','.join(_QUERIES)} (default: all)",
    )
    inputs_argument(parser, kept="the broker is")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
