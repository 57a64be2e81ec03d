"""A job for the tests: log directories to Parquet, or to a log directory, slowly.

`slow_copy.py FORMAT SOURCE TARGET [SECONDS]`: so long each batch of rows takes.
"""

import sys
import time
from collections.abc import Iterator

import pyarrow as pa

import kafkalog
from kafkalog.spark.frames import in_log_order
from kafkalog.spark.session import job_session


def main(table_format: str, source: str, target: str, seconds: str = "0") -> None:
    pause = float(seconds)

    def slowed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(pause)
            yield batch

    with job_session("slow copy", with_delta=False) as spark:
        read = spark.read.format("kafkalog").option("subscribe", "*").option("includeHeaders", True)
        rows = read.option("maxPartitionBytes", 300_000).load(source)
        if table_format == "kafkalog":
            rows = in_log_order(rows)
        rows = rows.mapInArrow(slowed, rows.schema)
        rows.write.format(table_format).mode("append").save(target)
        print("package:", *executors_package(spark.range(2).repartition(2)))


def executors_package(frame: object) -> list[str]:
    """Where executors have kafkalog from."""

    def places(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"place": [str(kafkalog.__file__)]})

    found = frame.mapInArrow(places, "place string").distinct().collect()  # type: ignore[attr-defined]
    return sorted(row.place for row in found)


if __name__ == "__main__":
    main(*sys.argv[1:])
