"""Ages in columns are those of `kafkalog.words`."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafkalog.analysis.sentences import age_column
from kafkalog.words import age_text
from tests.support.durations import LENGTHS


def test_columns_say_what_single_values_say(spark: SparkSession) -> None:
    lengths = [length_ms for length_ms, _ in LENGTHS]
    rows = spark.createDataFrame([(each,) for each in [*lengths, None]], "length_ms long")
    found = rows.select(age_column(F.col("length_ms"))).collect()
    assert [row[0] for row in found] == [*(age_text(age) for age in lengths), None]
