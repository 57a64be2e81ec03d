"""Fetch the jars that conf/spark-defaults.conf names, and of any other packages that are given:
`python -m kafkalog.spark.fetch_jars DIR [PACKAGE...]`.

They come to lie in DIR/jars, by the same resolver that Spark itself uses.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from kafkalog.spark.session import default_settings


def fetch_jars(directory: str, packages: Sequence[str] = ()) -> None:
    """Start a session that asks for the jars, and end it."""
    settings = default_settings()
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.jars.ivy", directory)
    wanted = ",".join([settings["spark.jars.packages"], *packages])
    builder = builder.config("spark.jars.packages", wanted)
    builder = builder.config("spark.jars.excludes", settings["spark.jars.excludes"])
    builder.getOrCreate().stop()


if __name__ == "__main__":
    fetch_jars(sys.argv[1], sys.argv[2:])
