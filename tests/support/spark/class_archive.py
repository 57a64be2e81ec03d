"""An archive of the classes that the JVM of a Spark session loads, from which the next one starts.

    python -m tests.support.spark.class_archive

Writes the archive into the virtual environment, beside Spark's jars. A JVM that finds other jars
than those of the archive does not use it.
"""

import os
import sys
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
_SMALL = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:disable")
JVM_OPTIONS = (*_SMALL, f"-XX:SharedArchiveFile={ARCHIVE}") if ARCHIVE.exists() else _SMALL


def main() -> None:
    """Start a session, run one small job, and archive the classes at its end."""
    from pyspark import SparkContext

    from kafkalog.spark.session import job_session

    written = ARCHIVE.with_suffix(".new")
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join((*_SMALL, f"-XX:ArchiveClassesAtExit={written}"))
    with job_session("class archive", with_delta=True) as spark:
        spark.range(10).selectExpr("sum(id)").collect()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.proc.stdin.close()  # The JVM of a session ends with its input.
    gateway.proc.wait()
    written.replace(ARCHIVE)


if __name__ == "__main__":
    main()
