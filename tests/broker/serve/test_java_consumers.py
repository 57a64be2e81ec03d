"""Java's consumers get of `kafkalog serve` the rows of view `records`."""

import pytest

from kafkalog import serve
from tests.support.serve.clients import records_of_view
from tests.support.serve.java_client import needs_compiler, records_of_java
from tests.support.serve.served_sets import LEVELS, SETS, Unpacked, served_paths

pytestmark = [pytest.mark.deep, needs_compiler]
# By the folder of tests/support/broker/jars.
RELEASES = {"4.4.0": "broker", "2.8.2": "clients28"}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", SETS)
def test_they_get_the_rows_of_view_records(unpacked: Unpacked, name: str, release: str) -> None:
    paths = served_paths(unpacked, name)
    with serve(paths) as running:
        for level in LEVELS:
            expected = records_of_view(paths, level)
            places = sorted({row[:2] for row in expected})
            found = records_of_java(RELEASES[release], running.bootstrap_servers, level, places)
            assert found.stops == []
            assert found.rows == expected
