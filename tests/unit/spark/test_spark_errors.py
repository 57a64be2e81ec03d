"""What an error that came by way of Spark says of itself."""

import pytest
from pyspark.errors import PySparkException

from kafkalog.spark.spark_errors import keep_words, last_words


@pytest.mark.parametrize(
    "text",
    [
        'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"',
        "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
    ],
)
def test_a_store_that_hadoop_does_not_know_is_explained(text: str) -> None:
    """Texts of Hadoop 3.5.0, without its jar of S3A."""
    assert last_words(PySparkException(text))[1] == (
        f"{text}; Delta's log is read and written by Hadoop: see object stores in docs/ingest.md"
    )


def test_other_errors_are_as_spark_says_them() -> None:
    assert last_words(PySparkException("the disk is full")) == (
        "PySparkException",
        "the disk is full",
    )


def test_an_error_of_several_lines_becomes_one() -> None:
    text = "cannot resolve x.\n\tIt is one of a,\n\tb;\n'Project [x]\n"
    assert last_words(PySparkException(text))[1] == (
        "cannot resolve x. It is one of a, b; 'Project [x]"
    )


class _NeedsJvm(PySparkException):
    """As an error of the JVM's: it cannot say itself when that has ended."""

    has_jvm = True

    def __str__(self) -> str:
        assert self.has_jvm
        return "Data source 'kafkalog' already exists"


def test_words_that_are_kept_need_no_jvm_later() -> None:
    error = _NeedsJvm("")
    keep_words(error)
    error.has_jvm = False
    assert last_words(error) == ("_NeedsJvm", "Data source 'kafkalog' already exists")
