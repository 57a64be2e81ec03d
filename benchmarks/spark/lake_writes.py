"""What `benchmarks/lake.py` measures, inside one Spark session: one contender, all topics."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import kafkalog
from benchmarks.inputs.broker_topics import WARM_UP, Topic
from benchmarks.measuring.processes import busy_seconds, process_seconds, worker_peak_bytes
from benchmarks.spark.spark_queries import PARQUET_CODECS, Place
from kafkalog.spark.session import job_session

KAFKA, SOURCE, COMMAND = "kafka_delta", "source_delta", "command_parquet"
EXPORTS = {"export_delta": "delta", "export_iceberg": "iceberg", "export_parquet": "parquet"}


def measured_writes(
    name: str, place: Place, topics: list[Topic], compressions: list[str]
) -> dict[str, Any]:
    """Write every topic with every codec of Parquet by one contender; return seconds, processor
    seconds, the broker's, and bytes written, by `<topic> <compression>`, and the largest worker.

    The session has read and written a small topic before, so that its start is not in the figures.
    An export has the session of job ingest-topics. Raises ValueError where a table has another
    number of rows than its topic.
    """
    found: dict[str, Any] = {}
    with job_session("tables of records", with_delta=True, compiles_less=name in EXPORTS) as spark:
        _written(spark, name, place, WARM_UP, "none", "warm")
        for topic in topics:
            for compression in compressions:
                key = f"{topic.name} {compression}"
                found[key] = _written(spark, name, place, topic, compression, "timed")
        found["worker_peak_bytes"] = worker_peak_bytes()
    return found


def _written(
    spark: SparkSession, name: str, place: Place, topic: Topic, compression: str, turn: str
) -> list[float]:
    output = place.scratch / f"{name}-{topic.name}-{compression}-{turn}"
    run = _run(spark, name, place, topic, compression, output)
    started, busy = time.perf_counter(), busy_seconds()
    broker = process_seconds(place.broker_pid)
    run()
    taken = [
        time.perf_counter() - started,
        busy_seconds() - busy,
        process_seconds(place.broker_pid) - broker,
    ]
    files = [path for path in output.rglob("*.parquet") if "_delta_log" not in path.parts]
    data = [path for path in files if "ingest_manifest" not in str(path.relative_to(output))]
    rows = spark.read.parquet(*map(str, data)).count()
    if rows != topic.records:
        raise ValueError(f"{name}, {topic.label}: {rows:,} rows of {topic.records:,} records")
    size = sum(path.stat().st_size for path in data)
    subprocess.run(["rm", "-r", str(output)], check=True)
    return [*taken, size]


def _run(
    spark: SparkSession, name: str, place: Place, topic: Topic, compression: str, output: Path
) -> Callable[[], object]:
    if name == COMMAND:
        command = [sys.executable, "-m", "kafkalog", "export", str(place.log_dir)]
        command += ["--topic", topic.name, "--output-dir", str(output), "--format", "parquet"]
        return lambda: subprocess.run([*command, "--compression", compression], check=True)
    if name in EXPORTS:
        return lambda: kafkalog.export(
            spark,
            str(place.log_dir),
            str(output),
            format=EXPORTS[name],
            topics=topic.name,
            compression=compression,
        )
    source = "kafka" if name == KAFKA else "kafkalog"
    reader = spark.read.format(source).option("subscribe", topic.name)
    if name == KAFKA:
        reader = reader.option("kafka.bootstrap.servers", place.bootstrap)

    def write() -> None:
        rows = reader.load() if name == KAFKA else reader.load(str(place.log_dir))
        codec = PARQUET_CODECS.get(compression, compression)
        spark.conf.set("spark.sql.parquet.compression.codec", codec)
        rows.write.format("delta").save(str(output))

    return write


def print_part(name: str, given: dict[str, Any], topics: list[Topic], codecs: list[str]) -> None:
    """Print what `measured_writes` returns as the last line, as JSON."""
    place = Place(
        given["bootstrap"], given["broker_pid"], Path(given["log_dir"]), Path(given["scratch"])
    )
    print(json.dumps(measured_writes(name, place, topics, codecs)))
