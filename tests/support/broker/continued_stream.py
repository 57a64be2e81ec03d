"""A stream of Spark's own Kafka source with a checkpoint, in a process of its own: each run goes on
where the last one ended."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.broker.live_records import spark_session
from tests.support.repository import ROOT


def continue_stream(bootstrap: str, topic: str, output: Path, seconds: int) -> None:
    """Add what is new in a topic to OUTPUT/rows; it may take so many seconds."""
    environment = {name: each for name, each in os.environ.items() if "SPARK" not in name}
    command = [sys.executable, "-m", __name__, bootstrap, topic, str(output)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]


def main(bootstrap: str, topic: str, output: str) -> None:
    """Read to the end."""
    place = Path(output)
    spark = spark_session(place / "scratch")
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }
    frame = spark.readStream.format("kafka").options(**options).load()
    rows = frame.select("partition", "offset", "value").writeStream.format("parquet")
    rows = rows.option("checkpointLocation", str(place / "checkpoint"))
    query = rows.trigger(availableNow=True).start(str(place / "rows"))
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
