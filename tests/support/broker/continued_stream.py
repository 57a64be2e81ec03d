"""A stream with a checkpoint, in a process of its own: each run goes on where the last one ended.
Its source is Spark's own for Kafka, or kafkalog's where a log directory is given."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.broker.live_records import spark_session
from tests.support.repository import ROOT


def continue_stream(source: str | Path, topic: str, output: Path, seconds: int) -> None:
    """Add what is new in a topic to OUTPUT/rows; it may take so many seconds."""
    done = run_stream(source, topic, output, seconds)
    assert done.returncode == 0, done.stderr.decode()[-3000:]


def run_stream(
    source: str | Path, topic: str, output: Path, seconds: int
) -> subprocess.CompletedProcess[bytes]:
    environment = {name: each for name, each in os.environ.items() if "SPARK" not in name}
    command = [sys.executable, "-m", __name__, str(source), topic, str(output)]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, timeout=seconds, check=False
    )


def main(source: str, topic: str, output: str) -> None:
    """Read to the end."""
    place = Path(output)
    spark = spark_session(place / "scratch")
    stream = spark.readStream.options(subscribe=topic, startingOffsets="earliest")
    if Path(source).is_dir():
        frame = stream.format("kafkalog").load(source)
    else:
        frame = stream.format("kafka").option("kafka.bootstrap.servers", source).load()
    rows = frame.select("partition", "offset", "value").writeStream.format("parquet")
    rows = rows.option("checkpointLocation", str(place / "checkpoint"))
    query = rows.trigger(availableNow=True).start(str(place / "rows"))
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
