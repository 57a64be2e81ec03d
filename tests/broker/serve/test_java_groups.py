"""Java's consumers subscribe to `kafkalog serve`, share partitions and go on where they stopped."""

from collections.abc import Callable, Iterator
from time import monotonic

import pytest
from py4j.java_gateway import JavaGateway

from kafkalog import serve
from tests.support.broker.cluster.java_gateway import java_gateway
from tests.support.serve.java_members import JavaMember, java_member
from tests.support.serve.served_sets import Unpacked

pytestmark = pytest.mark.deep

# This group had read one of the topic's records on the live broker.
GROUP, TOPIC, COMMITTED = "shop.g with spaces/and:\u00fcnicode", "shop.idem", 1
SHARED = {("shop.multi-3-part-0", number) for number in range(3)}
_WITHIN_SECONDS = 60

# Releases by the folder of their jars.
of_clients = pytest.mark.parametrize(
    ("gateway", "settings"),
    [
        pytest.param("broker", {"group_protocol": "classic"}, id="4.4.0-classic"),
        pytest.param("broker", {"group_protocol": "consumer"}, id="4.4.0-consumer"),
        pytest.param("clients28", {}, id="2.8.2"),
    ],
    indirect=["gateway"],
)


@pytest.fixture(scope="module")
def gateway(request: pytest.FixtureRequest) -> Iterator[JavaGateway]:
    with java_gateway(request.param) as found:
        yield found


def until(is_so: Callable[[], bool], *members: JavaMember) -> None:
    end = monotonic() + _WITHIN_SECONDS
    while not is_so():
        assert monotonic() < end, [each.assignment() for each in members]
        for each in members:
            each.poll()


def first_offset(member: JavaMember) -> int:
    end = monotonic() + _WITHIN_SECONDS
    while monotonic() < end:
        if records := member.poll():
            return records[0][2]
    raise AssertionError("no record came")


@of_clients
def test_a_group_goes_on_at_what_it_has_committed_on_disk_and_since(
    unpacked: Unpacked, gateway: JavaGateway, settings: dict[str, str]
) -> None:
    with serve(str(unpacked("kafka44.logs") / "log-dirs")) as running:
        address = running.bootstrap_servers
        with java_member(gateway, address, GROUP, [TOPIC], **settings) as member:
            assert first_offset(member) == COMMITTED
            member.commit(TOPIC, 0, 500)
        with java_member(gateway, address, GROUP, [TOPIC], **settings) as member:
            assert first_offset(member) == 500


@of_clients
def test_a_second_member_takes_over_partitions_and_gives_them_back(
    unpacked: Unpacked, gateway: JavaGateway, settings: dict[str, str]
) -> None:
    topics = ["shop.multi-3-part-0"]
    with serve(str(unpacked("kafka44.logs") / "log-dirs")) as running:
        address = running.bootstrap_servers
        with java_member(gateway, address, "new", topics, **settings) as stays:
            until(lambda: stays.assignment() == SHARED, stays)
            with java_member(gateway, address, "new", topics, **settings) as leaves:
                until(
                    lambda: (
                        bool(stays.assignment())
                        and bool(leaves.assignment())
                        and stays.assignment() | leaves.assignment() == SHARED
                        and not stays.assignment() & leaves.assignment()
                    ),
                    stays,
                    leaves,
                )
                for topic, number in leaves.assignment():
                    leaves.commit(topic, number, 700)
                committed = leaves.assignment()
            records: list[tuple[str, int, int]] = []
            end = monotonic() + _WITHIN_SECONDS
            while not committed <= {each[:2] for each in records}:
                assert monotonic() < end
                records += stays.poll()
            assert stays.assignment() == SHARED
            # Who takes over a partition begins at what the other has committed.
            firsts = {
                place: min(each[2] for each in records if each[:2] == place) for place in committed
            }
            assert firsts == dict.fromkeys(committed, 700)
