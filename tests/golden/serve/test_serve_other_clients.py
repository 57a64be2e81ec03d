"""`kafkalog serve` against consumers in Python, Go and JavaScript, and kcat, of all fixtures and
isolation levels."""

import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pytest

from kafkalog import serve
from tests.support.serve.clients import Row, records_of_view
from tests.support.serve.go_clients import built_clients, records_of_go_client
from tests.support.serve.kcat_client import records_of_kcat
from tests.support.serve.node_client import installed_client, records_of_kafkajs
from tests.support.serve.python_clients import records_of_aiokafka, records_of_kafka_python
from tests.support.serve.served_sets import LEVELS, SETS, Unpacked, served_paths

pytestmark = pytest.mark.deep

Client = Callable[[str, str, Collection[tuple[str, int]]], list[Row]]
CLIENTS = {"aiokafka": records_of_aiokafka, "kafka": records_of_kafka_python}
# Both refuse, in read_committed, a control batch that the cleaner has emptied.
EMPTIED = {"shop.compact-txdrop"}
GO_TIMES_END_MS = 2**63 // 1_000_000


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
            expected = [row for row in records_of_view(paths, level) if row[0] not in unread]
            places = {(row[0], row[1]) for row in expected}
            assert client(running.bootstrap_servers, level, places) == expected


@pytest.fixture(scope="module")
def go_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = built_clients(tmp_path_factory.mktemp("go"))
    if program is None:
        pytest.skip("needs Go")
    return program


@pytest.mark.parametrize("client", ["franz", "sarama"])
@pytest.mark.parametrize("name", SETS)
def test_go_clients_get_the_rows_of_view_records(
    unpacked: Unpacked, go_program: Path, name: str, client: str
) -> None:
    paths = served_paths(unpacked, name)
    with serve(paths) as running:
        for level in LEVELS:
            rows = records_of_view(paths, level)
            found = records_of_go_client(go_program, client, running.bootstrap_servers, level, rows)
            # What their type of a time cannot hold: one before 1970 or after 2262.
            untimed = {row[:3] for row in rows if row[3] and not 0 <= row[3] < GO_TIMES_END_MS}
            assert len(untimed) <= 5
            assert without_times(found, untimed) == without_times(rows, untimed)


def without_times(rows: Sequence[Row], places: Collection[tuple[str, int, int]]) -> list[Row]:
    return [(*row[:3], None, *row[4:]) if row[:3] in places else row for row in rows]


@pytest.mark.skipif(shutil.which("kcat") is None, reason="needs kcat")
@pytest.mark.parametrize("name", SETS)
def test_kcat_prints_the_rows_of_view_records(unpacked: Unpacked, name: str) -> None:
    paths = served_paths(unpacked, name)
    with serve(paths) as running:
        for level in LEVELS:
            # It is librdkafka, which reads one member of a gzip stream.
            rows = [row for row in records_of_view(paths, level) if not row[0].endswith(".raw")]
            found = records_of_kcat(running.bootstrap_servers, level, {row[0] for row in rows})
            assert found == [(*row[:6], ()) for row in rows]


@pytest.fixture(scope="module")
def node_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = installed_client(tmp_path_factory.mktemp("node"))
    if program is None:
        pytest.skip("needs Node.js and npm")
    return program


@pytest.mark.parametrize("name", SETS)
def test_kafkajs_gets_the_rows_of_view_records(
    unpacked: Unpacked, node_program: Path, name: str
) -> None:
    paths = served_paths(unpacked, name)
    with serve(paths) as running:
        for level in LEVELS:
            # lz4js takes checksums of blocks, which Kafka does not write, for data.
            rows = [row for row in records_of_view(paths, level) if not row[0].endswith(".raw")]
            found = records_of_kafkajs(node_program, running.bootstrap_servers, level, rows)
            assert found == rows
