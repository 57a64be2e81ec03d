"""The rule about open transactions, applied to DataFrames inside tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from kafkalog.coordination.groups.transactional_ids import OpenTransaction, OpenTransactionRule
from kafkalog.spark.tables import spark_schema

_Batches = Iterable[pa.RecordBatch]


def judged_transactions(transactions: DataFrame, rule: OpenTransactionRule) -> DataFrame:
    """Return the rows of schemas/tables/transaction_report.json, from what
    `transactions_with_states` returns."""
    schema = spark_schema("transaction_report")
    with_time = transactions.withColumn("at_ms", F.lit(rule.at_ms))
    return with_time.mapInArrow(_judging(rule, to_arrow_schema(schema)), schema)


def _judging(
    rule: OpenTransactionRule, schema: pa.Schema
) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    def judge(batches: _Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            is_open = pc.equal(batch["outcome"], "open")
            found = [
                rule.judge(row, row["coordinator_state"], row["holder"])
                for row in batch.filter(is_open).to_pylist()
            ]
            columns = {name: batch[name] for name in schema.names}
            for name, values in zip(
                OpenTransaction._fields, zip(*found, strict=True), strict=False
            ):
                decided = pa.array(values, schema.field(name).type)
                columns[name] = pc.replace_with_mask(columns[name], is_open, decided)
            yield pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)

    return judge
