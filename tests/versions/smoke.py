"""Jobs, reads and streams of an installed kafkalog: `python smoke.py SHOP_WEEK` in an empty folder.

Run by the Python of an environment with one version of Spark (tests/versions/__main__.py). Prints a
line for each step; the first that goes wrong ends it. `SHOP_WEEK` is examples/shop-week.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pyspark

ORDERS, CUSTOMERS = 3186, 56
# What a run that succeeds must not print.
NOISE = ("incubator", "Traceback", " INFO ", "BrokenPipe", "FileStreamSink")
BIN = Path(sys.executable).parent
SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))
HAS_LIMITS = SPARK >= (4, 2)


def check(is_true: object, *said: object) -> None:
    """End where something is not as expected."""
    if not is_true:
        raise SystemExit("\n".join(map(str, said)))


def run(*command: str, code: int = 0, noise: tuple[str, ...] = NOISE) -> str:
    """Run a program of this environment; return what it says on stdout."""
    given = {"PATH": f"{BIN}:{os.environ['PATH']}", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        env=os.environ | given,
        capture_output=True,
        text=True,
        check=False,
    )
    check(done.returncode == code, shlex.join(command), done.returncode, done.stdout, done.stderr)
    loud = [line for line in done.stderr.splitlines() if any(word in line for word in noise)]
    check(code or not loud, shlex.join(command), done.stderr)
    return done.stdout + (done.stderr if code else "")


def job(name: str, *arguments: str, code: int = 0) -> str:
    """Run a job to a directory of its own name."""
    return run("kafkalog", "job", name, *arguments, "--show", "0", code=code)


def jobs(shop: str, table_format: str) -> None:
    """Run what reads bytes, commits and records, and run the ingest twice. What Spark's writer
    never writes is the same in each format."""
    given = ("--format", table_format, "--output-dir", table_format)
    if table_format == "parquet":
        check("sound: checked 14 segments" in job("validate-checksums", shop, *given))
        check("lag_history" in job("lag-history", shop, *given))
    check("3 groups, 9 partitions" in job("consumer-lag", shop, *given))
    for read in (f"{ORDERS:,} offsets of 3 partitions", "0 offsets of 0 partitions"):
        said = job("ingest-topics", shop, "--topic", "orders", *given)
        check(f"read {read}" in said or "nothing" in said, said)
    check(f"{CUSTOMERS} keys" in job("reconstruct-state", shop, "--topic", "customers", *given))


def decoding(shop: str) -> None:
    """Decode JSON, and Avro by the jar that a job fetches."""
    values = ("--value-format", "json", "--value-schema", "customer STRING, points BIGINT")
    given = ("--topic", "customers", "--format", "parquet", "--output-dir", "json")
    check("300 offsets" in job("ingest-topics", shop, *given, *values))
    from kafkalog.testing import LogDirectory

    logs = LogDirectory("avro-logs")
    logs.topic("numbers").records([("a", b"\x02"), ("b", b"\x04")])
    logs.write()
    values = ("--value-format", "avro", "--value-schema", '"long"')
    given = ("--topic", "numbers", "--format", "parquet", "--output-dir", "avro")
    check("2 offsets" in job("ingest-topics", "avro-logs", *given, *values))
    import pyarrow.parquet as pq

    decoded = pq.read_table("avro/ingested_records")["value_decoded"].to_pylist()
    check(sorted(decoded) == [1, 2], decoded)


def decoding_without_spark(shop: str) -> None:
    """Decode JSON and Avro by commands, and give what cannot be decoded a table of its own."""
    import pyarrow.parquet as pq

    json: tuple[str, ...] = ("--topic", "customers", "--output-dir", "exported")
    json = (*json, "--value-format", "json", "--value-schema")
    of_topics = ("customer STRING, points BIGINT", "--table-per-topic")
    check("300 offsets" in run("kafkalog", "export", shop, *json, *of_topics))
    points = pq.read_table("exported/customers")["value_decoded"].combine_chunks().field("points")
    check(points.null_count < 300, points)
    run("kafkalog", "export", shop, *json, "points ARRAY<BIGINT>", "--dead-letters", "dead")
    dead = pq.read_table("exported/dead")["value_error"]
    check(len(dead) == len(points) - points.null_count and not dead.null_count, dead)
    avro = ("--value-format", "avro", "--value-schema", '"long"')
    said = run("kafkalog", "sql", "avro-logs", "select sum(value_decoded) n from records", *avro)
    check("3" in said.split(), said)


def submitted(shop: str, table_format: str) -> None:
    """Run a job by spark-submit, with what kafkalog prints for it."""
    arguments = [shop, "--output-dir", "submitted", "--format", table_format]
    printed = run("kafkalog", "job", "--spark-submit", "validate-checksums", *arguments).split()
    # Java itself says that a module is of its incubator, before anything of ours runs.
    noise = tuple(word for word in NOISE if word != "incubator")
    said = run("spark-submit", "--master", "local[2]", *printed, noise=noise)
    check("sound: checked 14 segments" in said, said)


def reads(spark: Any, shop: str) -> None:
    """Read by name, by function and by SQL, and write what was read."""
    import kafkalog

    found = spark.read.format("kafkalog").option("subscribe", "orders").load(shop)
    check(found.count() == ORDERS)
    check(kafkalog.read(spark, shop, view="batches").where("topic = 'orders'").count() == 480)
    found.createOrReplaceTempView("orders")
    check(spark.sql("SELECT count(DISTINCT partition) FROM orders").head()[0] == 3)
    kafkalog.write(kafkalog.read(spark, shop, topics="customers"), "written")
    check(kafkalog.read(spark, "written").count() == 300)


def streams(spark: Any, shop: str) -> None:
    """Stream what is there, once; a second run adds nothing. Limits hold where Spark has them."""

    def stream(name: str, **options: object) -> int:
        rows = spark.readStream.format("kafkalog").option("startingOffsets", "earliest")
        rows = rows.option("subscribe", "orders").options(**options).load(shop)
        query = rows.writeStream.format("parquet").option("checkpointLocation", f"{name}-begun")
        query = query.trigger(availableNow=True).start(name)
        query.awaitTermination()
        check(spark.read.parquet(name).count() == ORDERS, name)
        return len(list(Path(f"{name}-begun", "commits").glob("[0-9]*")))

    batches = stream("streamed")
    check(stream("streamed") == batches, "a second run has read again")
    if HAS_LIMITS:
        check(stream("limited", maxOffsetsPerTrigger=1000) >= 4)
        return
    from pyspark.errors import StreamingQueryException

    try:
        stream("limited", maxOffsetsPerTrigger=1000)
    except StreamingQueryException as error:
        check("maxOffsetsPerTrigger" in str(error) and "Spark 4.2" in str(error), error)
    else:
        raise SystemExit("a limit was ignored")


def with_session(use: Callable[[Any, str], None]) -> Callable[[str], None]:
    """Return a step that has a session of Spark, one that kafkalog knows nothing of."""

    @wraps(use)
    def step(shop: str) -> None:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        use(builder.getOrCreate(), shop)

    return step


def main(shop: str) -> None:
    """Run all steps."""
    os.environ["PATH"] = f"{BIN}:{os.environ['PATH']}"
    check("orders" in run("kafkalog", "ls", shop))
    print("the command line", flush=True)
    try:
        import delta

        formats = [delta.__name__, "parquet"]
    except ImportError:
        formats = ["parquet"]
        said = job("validate-checksums", shop, "--output-dir", "none", code=2)
        check("--format: 'delta' is not valid" in said and "no Delta" in said, said)
        print("Delta is refused", flush=True)
    for table_format in formats:
        jobs(shop, table_format)
        print("jobs,", table_format, flush=True)
    for step in (decoding, decoding_without_spark, with_session(reads), with_session(streams)):
        step(shop)
        print(step.__name__, flush=True)
    submitted(shop, formats[0])
    print("spark-submit", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
