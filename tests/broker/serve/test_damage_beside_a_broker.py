"""On damaged logs a broker's consumer stops where the damage begins, or the broker does not start;
that of `kafkalog serve` goes on after it."""

from pathlib import Path

import pytest

from kafkalog import serve
from tests.support.broker.kafka_server import KafkaServer, ServerError
from tests.support.broker.prepared_cluster import TOPIC, Cluster, prepared_cluster
from tests.support.serve.clients import records_of_view
from tests.support.serve.java_client import needs_compiler, records_of_java_consumers
from tests.support.serve.served_sets import Unpacked

pytestmark = [pytest.mark.deep, needs_compiler]

# By the names of the damaged copies: where a broker's consumer ends with an error.
DIES_AT = {
    "bitflip-payload-active": 2721,
    "bitflip-payload-first-segment": 191,
    "bitflip-header-crc": 2721,
    "magic-9": 2721,
    "compressed-body-broken-valid-crc": 2547,
    "compressed-bitflip": 2547,
}
# What both deliver, for nothing that can be read is lost after the damage.
READ_BY_BOTH = (
    *("as-killed", "bitflip-leader-epoch", "truncated-last-batch", "truncated-in-header"),
    *("offsets-go-back", "middle-segment-missing", "first-segment-truncated"),
)
NO_START = ("zeroed-tail-overwritten", "garbage-middle", "length-negative", "length-too-small")


def filled_cluster(unpacked: Unpacked, folder: Path, names: tuple[str, ...]) -> Cluster:
    """A cluster that was stopped cleanly, with a damaged copy in each partition."""
    cluster = prepared_cluster(folder, len(names))
    for partition, name in enumerate(names):
        variant = unpacked("unclean.logs") / "variants" / name / "log-dirs"
        (directory,) = variant.glob("e.*-0")
        cluster.fill(partition, directory)
    # It knows of no records in these partitions.
    (cluster.log_dir / "replication-offset-checkpoint").unlink()
    return cluster


def test_its_consumer_dies_where_ours_goes_on(unpacked: Unpacked, tmp_path: Path) -> None:
    names = (*DIES_AT, *READ_BY_BOTH)
    cluster = filled_cluster(unpacked, tmp_path / "kafka", names)
    path = str(cluster.log_dir)
    places = [(TOPIC, partition) for partition in range(len(names))]
    with serve(path, deep=True) as running:
        ours = records_of_java_consumers("broker", running.bootstrap_servers, places)
    assert ours.stops == []
    assert ours.rows == [
        row for row in records_of_view([path], "read_uncommitted") if row[0] == TOPIC
    ]
    with KafkaServer(cluster.work_dir) as server:
        theirs = records_of_java_consumers("broker", server.bootstrap, places)
    stops = {names[each.partition]: each for each in theirs.stops}
    assert {name: each.position for name, each in stops.items()} == DIES_AT
    for name, stop in stops.items():
        assert "please seek past the record" in stop.why, name
    for partition, name in enumerate(names):
        read = [row for row in ours.rows if row[1] == partition]
        before = [row for row in read if row[2] < DIES_AT.get(name, 2**63)]
        assert [row for row in theirs.rows if row[1] == partition] == before, name
        assert (len(read) > len(before)) == (DIES_AT.get(name, 2547) != 2547), name


@pytest.mark.parametrize("name", NO_START)
def test_the_broker_does_not_start_and_ours_serves(
    unpacked: Unpacked, tmp_path: Path, name: str
) -> None:
    cluster = filled_cluster(unpacked, tmp_path / "kafka", (name,))
    path = str(cluster.log_dir)
    with serve(path, deep=True) as running:
        ours = records_of_java_consumers("broker", running.bootstrap_servers, [(TOPIC, 0)])
    assert ours.stops == []
    assert ours.rows == [
        row for row in records_of_view([path], "read_uncommitted") if row[0] == TOPIC
    ]
    assert len(ours.rows) > 2700
    with pytest.raises(ServerError, match="Error starting LogManager"):
        KafkaServer(cluster.work_dir).start()
