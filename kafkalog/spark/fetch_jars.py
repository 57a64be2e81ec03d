"""Fetch the jars of Delta and Avro for the installed Spark, and of other packages that are given:
`python -m kafkalog.spark.fetch_jars DIR [PACKAGE...]`.

They come to lie in DIR/jars, by the same resolver that Spark itself uses.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from kafkalog.spark.session import VERSION
from kafkalog.spark_versions import EXCLUDES, PACKAGES, settings_for


def fetch_jars(directory: str, packages: Sequence[str] = ()) -> None:
    """Start a session that asks for the jars, and end it."""
    with_delta = VERSION.delta_package is not None
    settings = settings_for(VERSION, with_delta=with_delta, with_avro=True)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.jars.ivy", directory)
    builder = builder.config(PACKAGES, ",".join([settings[PACKAGES], *packages]))
    builder = builder.config(EXCLUDES, settings[EXCLUDES])
    builder.getOrCreate().stop()


if __name__ == "__main__":
    fetch_jars(sys.argv[1], sys.argv[2:])
