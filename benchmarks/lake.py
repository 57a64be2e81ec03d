"""Topics into tables: `python -m benchmarks.lake`.

A real broker serves topics that Java's producer filled. Every contender writes all records of each
topic to a table, in a session of local[2] of its own whose start is not counted: Spark's Kafka
source into Delta, kafkalog's source by Spark's writer into Delta, `kafkalog.export` into Delta,
Iceberg and Parquet, and the command `kafkalog export`, whose start is counted. Linux only; needs
Java and Maven. The topics are kept for the next time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.inputs.broker_inputs import BrokerMissingError
from benchmarks.inputs.broker_topics import WARM_UP, Topic, broker_with
from benchmarks.inputs.wanted import tables_arguments, texts
from benchmarks.measuring.processes import given_jars, part_output, submit_arguments
from benchmarks.measuring.report import inputs_argument, load, machine, progress, table

_PROJECT = Path(__file__).parent.parent
_KAFKA, _SOURCE, _DELTA = "kafka_delta", "source_delta", "export_delta"
_CONTENDERS = {
    _KAFKA: "Spark's Kafka source to Delta",
    _SOURCE: "kafkalog's source by Spark's writer to Delta",
    _DELTA: "export to Delta",
    "export_iceberg": "export to Iceberg",
    "export_parquet": "export to Parquet",
    "command_parquet": "the command, to Parquet",
}
# How many times as fast as Spark's Kafka source an export to Delta has to be, by the table's codec.
_TARGETS = {"none": 4.0, "zstd": 3.0}
_WRITER_TARGET = 2.5  # and as Spark's writer over kafkalog's source
_COLUMNS = (
    "topic",
    "Parquet",
    "contender",
    "s",
    "MB/s",
    "processor s",
    "broker, processor s",
    "processor hours per TiB",
    "MB written",
    "times as fast as Kafka's source",
    "as Spark's writer",
)

# By `<topic> <compression>`, and by contender: what each round found.
_Found = dict[str, dict[str, list[list[float]]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report. The status says nothing about targets."""
    options = _options(arguments)
    topics = _topics(options)
    if options.part:
        from benchmarks.spark.lake_writes import print_part  # imports pyspark

        print_part(options.part, json.loads(options.place), topics, options.compressions)
        return 0
    options.inputs.mkdir(parents=True, exist_ok=True)
    before, found, peaks = load(), _new_found(), dict.fromkeys(_CONTENDERS, (0, 0))
    try:
        with (
            broker_with([*topics, WARM_UP], options.inputs.resolve(), progress) as server,
            tempfile.TemporaryDirectory(dir=options.inputs.resolve()) as scratch,
        ):
            place = {
                "bootstrap": server.bootstrap,
                "broker_pid": server.pid,
                "log_dir": str(server.log_dir),
                "scratch": scratch,
            }
            for number in range(options.rounds):
                for name in options.contenders:
                    figures, peak_bytes = _measured(options, name, place)
                    worker = max(peaks[name][0], figures.pop("worker_peak_bytes"))
                    peaks[name] = worker, max(peaks[name][1], peak_bytes)
                    for key, taken in figures.items():
                        found[key][name].append(taken)
                    progress(f"round {number + 1}, {_CONTENDERS[name]}: {figures}")
    except BrokerMissingError as error:
        print(f"no real broker here: {error}", file=sys.stderr)
        return 1
    _report(options, topics, found, peaks)
    print(f"\n{before} before, {load()} after")
    return 0


def _new_found() -> _Found:
    return defaultdict(lambda: defaultdict(list))


def _topics(options: argparse.Namespace) -> list[Topic]:
    size = int(options.size * 2**20)
    return [
        Topic(codec, record, size, options.partitions)
        for record in options.record_sizes
        for codec in options.codecs
    ]


def _measured(
    options: argparse.Namespace, name: str, place: dict[str, Any]
) -> tuple[dict[str, Any], int]:
    """Return one contender's figures, and the most memory of its session. Raises
    CalledProcessError where it fails."""
    from tests.support.broker.class_paths import class_path

    jars = class_path("spark_kafka").replace(os.pathsep, ",")
    delta = given_jars()
    command = [sys.executable, "-m", "benchmarks.lake", "--part", name]
    command += ["--place", json.dumps(place), "--size", str(options.size)]
    command += ["--partitions", str(options.partitions), "--codecs", ",".join(options.codecs)]
    command += ["--compressions", ",".join(options.compressions)]
    command += ["--record-sizes", ",".join(map(str, options.record_sizes))]
    return part_output(command, submit_arguments(jars=f"{jars},{delta}" if delta else jars))


def _report(
    options: argparse.Namespace,
    topics: Sequence[Topic],
    found: _Found,
    peaks: dict[str, tuple[int, int]],
) -> None:
    packages = ("kafkalog", "pyspark", "delta-spark", "pyarrow", "pyiceberg", "numba")
    print(machine(packages, "all"))
    size = topics[0].size / 2**20
    print(f"values of a topic: {size:,.0f} MiB; partitions: {options.partitions}; medians\n")
    rows = [
        row
        for topic in topics
        for compression in options.compressions
        for row in _rows(topic, compression, found[f"{topic.name} {compression}"])
    ]
    print(table(_COLUMNS, rows, left=3))
    print()
    header = ("contender", "largest Python worker, MiB", "all processes of the session, MiB")
    memory = [
        (_CONTENDERS[name], f"{worker / 2**20:,.0f}", f"{everything / 2**20:,.0f}")
        for name, (worker, everything) in peaks.items()
        if everything
    ]
    print(table(header, memory, left=1))


def _rows(
    topic: Topic, compression: str, by_contender: dict[str, list[list[float]]]
) -> list[tuple[str, ...]]:
    medians = {
        name: [statistics.median(figures) for figures in zip(*rounds, strict=True)]
        for name, rounds in by_contender.items()
    }
    rows: list[tuple[str, ...]] = []
    for name, (seconds, busy, broker, written) in medians.items():
        is_goal = name == _DELTA
        rows.append(
            (
                topic.label,
                compression,
                _CONTENDERS[name],
                f"{seconds:.2f}",
                f"{topic.size / seconds / 1e6:,.0f}",
                f"{busy:.1f}",
                f"{broker:.1f}",
                f"{(busy + broker) / 3600 * 2**40 / topic.size:.2f}",
                f"{written / 1e6:,.0f}",
                _faster(medians, _KAFKA, seconds, _TARGETS.get(compression) if is_goal else None),
                _faster(medians, _SOURCE, seconds, _WRITER_TARGET if is_goal else None),
            )
        )
    return rows


def _faster(
    medians: dict[str, list[float]], peer: str, seconds: float, target: float | None
) -> str:
    if peer not in medians:
        return ""
    ratio = medians[peer][0] / seconds
    reached = "" if target is None else " (reached)" if ratio >= target else f" (of {target:g})"
    return f"{ratio:.1f}{reached}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lake", description=__doc__)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=float, default=2048, metavar="MIB", help="of each topic")
    parser.add_argument("--partitions", type=int, default=2, help="of each topic")
    parser.add_argument("--rounds", type=int, default=3, help="turns that each takes")
    tables_arguments(parser)
    parser.add_argument(
        "--contenders", type=texts, default=list(_CONTENDERS), help=", ".join(_CONTENDERS)
    )
    inputs_argument(parser, kept="the broker is")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
