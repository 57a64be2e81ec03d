"""What all tests with a real Kafka are marked with."""

import pytest

from tests.support.broker.broker_run import ALL_WRITTEN
from tests.support.broker.class_paths import missing_programs

_MISSING = missing_programs()
needs_kafka = [
    pytest.mark.broker,
    pytest.mark.skipif(bool(_MISSING), reason=f"not on the PATH: {', '.join(_MISSING)}"),
]
each_written_partition = pytest.mark.parametrize("place", ALL_WRITTEN, ids=str)
