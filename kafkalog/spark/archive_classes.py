"""Make the archive of Spark's classes, from which jobs start, unless it is there.

python -m kafkalog.spark.archive_classes
"""

from __future__ import annotations

from kafkalog.spark.class_archive import archive_options
from kafkalog.spark.session import job_session


def archive_classes() -> None:
    """Start a session and run one small job."""
    if archive_options() is None:
        with job_session("class archive", with_delta=True) as spark:
            spark.range(10).selectExpr("sum(id)").collect()


if __name__ == "__main__":
    archive_classes()
