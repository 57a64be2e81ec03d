"""Sentences and ages in columns are those of `kafkalog.words`."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafkalog.analysis.sentences import age_column, sentence_column
from kafkalog.words import age_text, sentence
from tests.support.durations import LENGTHS

WORDS = "{1:record} for {0:ms}, of {1}, at {1:batch}"


def test_columns_say_what_single_values_say(spark: SparkSession) -> None:
    rows = [(length_ms, place % 3 * 1000 + 1) for place, (length_ms, _) in enumerate(LENGTHS)]
    numbers = spark.createDataFrame([*rows, (None, 1)], "length_ms long, count long")
    found = numbers.select(
        sentence_column(WORDS, F.col("length_ms"), F.col("count")), age_column(F.col("length_ms"))
    ).collect()
    assert [row[1] for row in found] == [*(age_text(age) for age, _ in rows), None]
    assert [row[0] for row in found] == [*(sentence(WORDS, row) for row in rows), None]
