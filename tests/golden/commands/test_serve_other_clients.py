"""`kafkalog serve` against consumers written in Python, of all fixtures and isolation levels."""

from collections.abc import Callable, Collection

import pytest

from kafkalog import serve
from tests.support.serve.clients import Row, records_of_view
from tests.support.serve.python_clients import records_of_aiokafka, records_of_kafka_python
from tests.support.serve.served_sets import LEVELS, SETS, Unpacked, served_paths

pytestmark = pytest.mark.deep

Client = Callable[[str, str, Collection[tuple[str, int]]], list[Row]]
CLIENTS = {"aiokafka": records_of_aiokafka, "kafka": records_of_kafka_python}
# Neither reads committed records where the cleaner has emptied a control batch, and aiokafka no
# lz4 of the first formats, whoever serves them.
EMPTIED = {"shop.compact-txdrop"}
FIRST_LZ4 = {
    *("old.upgraded", "old.v0.compacted", "old.v0.mixed"),
    *("o8.codec-lz4", "o8.compacted", "o8.multi-3", "o8.upgraded", "o8.v0.compacted"),
    "o8.v0.mixed",
}


@pytest.mark.parametrize("module", CLIENTS)
@pytest.mark.parametrize("name", SETS)
def test_python_clients_get_the_rows_of_view_records(
    unpacked: Unpacked, name: str, module: str
) -> None:
    pytest.importorskip(module)
    client: Client = CLIENTS[module]
    paths = served_paths(unpacked, name)
    with serve(paths) as running:
        for level in LEVELS:
            unread = EMPTIED if level == "read_committed" else set()
            unread = unread | (FIRST_LZ4 if module == "aiokafka" else set())
            expected = [row for row in records_of_view(paths, level) if row[0] not in unread]
            places = {(row[0], row[1]) for row in expected}
            assert client(running.bootstrap_servers, level, places) == expected
