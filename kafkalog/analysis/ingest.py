"""Records of topics as rows of a table of their own. Rules: docs/ingest.md F530 to F535."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafkalog.schemas import table_fields

# The columns that are read of view `records`.
INGESTED_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "key",
    "value",
    "headers",
    "timestampMs",
    "leaderEpoch",
    "brokerId",
)


def ingested_records(records: DataFrame, ranges: DataFrame, run: int) -> DataFrame:
    """Rows of schemas/tables/ingested_records.json: `ranges` has a row for each topic and
    partition, with the cluster and the path that it is from."""
    places = F.broadcast(ranges.select("topic", "partition", "cluster_id", "input_path"))
    rows = records.join(places, ["topic", "partition"]).withColumns(
        {
            "broker_id": F.col("brokerId"),
            "timestamp_type": F.col("timestampType"),
            "timestamp_ms": F.nullif(F.col("timestampMs"), F.lit(-1)),
            "leader_epoch": F.col("leaderEpoch"),
            "ingest_run": F.lit(run).cast("long"),
        }
    )
    return rows.select(*(field["name"] for field in table_fields("ingested_records")))
