"""Generations of groups over time, from view `group_metadata`. Rule: docs/format.md F339."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from kafkalog.analysis.lag.groups import GROUP_KEY, by_rows
from kafkalog.coordination.groups.group_generations import GENERATION_COLUMNS, GroupGenerations
from kafkalog.schemas import table_json

# A copy of a group's records: a partition of `__consumer_offsets` has replicas.
_COPY = (*GROUP_KEY, "group_type", "broker_id", "input_path")


def group_generations(records: DataFrame) -> DataFrame:
    """Return a row for each generation of a group and for each deletion of one:
    schemas/tables/group_generations.json."""

    def rows(found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        generations = GroupGenerations()
        for record in sorted(found, key=lambda record: int(record["record_offset"])):
            generations.add(record)
        return generations.rows()

    schema = StructType.fromJson(json.loads(table_json("group_generations")))
    copies = records.select(*GENERATION_COLUMNS).groupBy(*_COPY)
    return copies.applyInArrow(by_rows(rows, schema), schema)
