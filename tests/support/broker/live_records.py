"""Spark's own Kafka source, in a process of its own: what it reads from given offsets on."""

import json
import os
import subprocess
import sys
from pathlib import Path

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from tests.support.broker.class_paths import class_path
from tests.support.repository import ROOT

_COLUMNS = ("topic", "partition", "offset", "key", "value")


def write_live_records(bootstrap: str, offsets_file: Path, output: Path, seconds: int) -> None:
    """Write OUTPUT/batch and OUTPUT/stream; it may take so many seconds."""
    # Its jars would be left out for those that the environment names.
    environment = {name: each for name, each in os.environ.items() if "SPARK" not in name}
    command = [sys.executable, "-m", __name__, bootstrap, str(offsets_file), str(output)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]


def spark_session(scratch: Path) -> SparkSession:
    """A session with the jars of the Kafka source."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # A class path rather than jars alone: the session is of this process only.
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    settings = {
        "spark.jars": class_path("spark_kafka").replace(os.pathsep, ","),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(scratch),
        "spark.sql.session.timeZone": "UTC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _loaded(reader: DataFrameReader | DataStreamReader, bootstrap: str, offsets: str) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "kafka.isolation.level": "read_committed",
        "subscribe": ",".join(json.loads(offsets)),
        "startingOffsets": offsets,
    }
    return reader.format("kafka").options(**options).load().select(*_COLUMNS)


def main(bootstrap: str, offsets_file: str, output: str) -> None:
    """Read to the end twice, as a batch and as a stream."""
    place, offsets = Path(output), Path(offsets_file).read_text()
    spark = spark_session(place / "scratch")
    _loaded(spark.read, bootstrap, offsets).write.parquet(str(place / "batch"))
    stream = _loaded(spark.readStream, bootstrap, offsets).writeStream.format("parquet")
    stream = stream.option("checkpointLocation", str(place / "checkpoint"))
    query = stream.trigger(availableNow=True).start(str(place / "stream"))
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
