"""Whether the tests' session has spark-avro: `make setup` fetches it."""

import pytest

from tests.support.repository import delta_jars

needs_avro = pytest.mark.skipif(
    not any("spark-avro" in jar.name for jar in delta_jars()),
    reason="the jar of spark-avro is not there: `make setup` fetches it",
)
