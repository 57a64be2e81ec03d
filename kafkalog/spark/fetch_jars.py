"""Fetch the jars that conf/spark-defaults.conf names: `python -m kafkalog.spark.fetch_jars DIR`.

They come to lie in DIR/jars, by the same resolver that Spark itself uses.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from kafkalog.spark.session import default_settings


def fetch_jars(directory: str) -> None:
    """Start a session that asks for the jars, and end it."""
    settings = default_settings()
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.jars.ivy", directory)
    for key in ("spark.jars.packages", "spark.jars.excludes"):
        builder = builder.config(key, settings[key])
    builder.getOrCreate().stop()


if __name__ == "__main__":
    fetch_jars(sys.argv[1])
