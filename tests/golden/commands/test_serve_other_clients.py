"""`kafkalog serve` against consumers in Python and Go, of all fixtures and isolation levels."""

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from kafkalog import serve
from tests.support.serve.clients import Row, records_of_view
from tests.support.serve.go_clients import built_clients, records_of_go_client
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


@pytest.fixture(scope="module")
def go_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = built_clients(tmp_path_factory.mktemp("go"))
    if program is None:
        pytest.skip("needs Go")
    return program


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("client", ["franz", "sarama"])
@pytest.mark.parametrize("name", ["kafka44", "kafka39zk", "tiered43"])
def test_go_clients_get_the_rows_of_view_records(
    unpacked: Unpacked, go_program: Path, name: str, client: str
) -> None:
    # Of formats 0 and 1 they read other times, and not all of lz4.
    paths = served_paths(unpacked, name)
    with serve(paths) as running:
        for level in LEVELS:
            # Times before 1970 and after 2262 are more than they can hold.
            expected = [row for row in records_of_view(paths, level) if not row[0].endswith(".raw")]
            address = running.bootstrap_servers
            assert records_of_go_client(go_program, client, address, level, expected) == expected
