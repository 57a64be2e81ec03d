"""A first look at a log directory: `python examples/first_look.py LOG_DIR...`."""

import sys

from pyspark.sql import functions as F

from kafkalog import job_session

with job_session("a first look", with_delta=False) as spark:
    records = spark.read.format("kafkalog").option("mode", "PERMISSIVE").load(sys.argv[1:])
    summary = records.groupBy("topic", "partition").agg(
        F.count("*").alias("records"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.min("timestamp").alias("from"),
        F.max("timestamp").alias("to"),
        F.count_if(F.col("value").isNull()).alias("tombstones"),
    )
    summary.orderBy("topic", "partition").show(100, truncate=60)
