"""Clients read from an object store, through `kafkalog serve`, what they read from a disk."""

from kafkalog import serve
from tests.remote.stores import Store, needs_store
from tests.support.repository import EXAMPLES
from tests.support.serve.clients import records_of_confluent_kafka, records_of_view

pytestmark = needs_store


def test_a_client_gets_the_same_of_a_store_and_of_a_disk(store: Store) -> None:
    uri, _ = store.bucket(EXAMPLES / "kafka-4.4")
    with serve(uri) as running:
        found = records_of_confluent_kafka(running.bootstrap_servers, "read_committed")
    assert found == records_of_view([str(EXAMPLES / "kafka-4.4")], "read_committed")
