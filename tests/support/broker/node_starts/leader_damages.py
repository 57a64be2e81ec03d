"""Partitions that the metadata says no replica leads, and whom Kafka 4.4.0 made the leader.

tests/broker/damage starts brokers on each; tests/golden has the outcomes.
"""

from pathlib import Path

from tests.support.broker.node_starts.read_damages import (
    MetadataRecord,
    ReadDamage,
    all_of,
    config_record,
    directory_id,
    metadata,
    topic_id,
)
from tests.support.broker.node_starts.startup_damages import Damage, changed, removed

_ORDERS = frozenset(("orders-0",))
_REGISTER, _CHANGE = 0, 5
# A broker that is registered, and does not run.
_OTHER = 2
OTHER_ID = "hRXkNyIgSWC5u9gFH56hNw"


def _registered(*, is_fenced: bool) -> MetadataRecord:
    end_point = {"name": "PLAINTEXT", "host": "127.0.0.1", "port": 1, "securityProtocol": 0}
    level = {"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 33}
    return (
        *(_REGISTER, 3),
        {
            "brokerId": _OTHER,
            "isMigratingZkBroker": False,
            "incarnationId": OTHER_ID,
            "brokerEpoch": 80,
            "endPoints": [end_point],
            "features": [level],
            "rack": None,
            "fenced": is_fenced,
            "inControlledShutdown": False,
            "logDirs": [OTHER_ID],
        },
    )


def _recorded(
    replicas: list[int],
    isr: list[int],
    eligible: list[int] | None = None,
    last_known: list[int] | None = None,
    leader: int = -1,
    *more: MetadataRecord,
    is_fenced: bool = True,
    place: str | None = None,
) -> Damage:
    """Return what makes this the last record of orders-0, after one that registers broker 2 and
    others."""

    def records(folder: Path) -> list[MetadataRecord]:
        places = {1: place or directory_id(folder, "d2"), _OTHER: OTHER_ID}
        values: dict[str, object] = {
            "topicId": topic_id(folder),
            "partitionId": 0,
            "replicas": replicas,
            "isr": isr,
            "leader": leader,
            "eligibleLeaderReplicas": eligible or [],
            "lastKnownElr": last_known or [],
            "directories": [places[each] for each in replicas],
        }
        return [_registered(is_fenced=is_fenced), *more, (_CHANGE, 2, values)]

    return metadata(records)


def _leads(make: Damage) -> ReadDamage:
    return ReadDamage(make)


def _none(make: Damage) -> ReadDamage:
    return ReadDamage(make, leaderless=_ORDERS)


_UNCLEAN = removed("d?/.kafka_cleanshutdown")
_ALLOWED = "unclean.leader.election.enable"
_WITHOUT_ELIGIBLE: MetadataRecord = (
    *(12, 0),
    {"name": "eligible.leader.replicas.version", "featureLevel": 0},
)
# The id of a directory that a broker has lost.
_LOST = "A" * 21 + "g"
LEADER_DAMAGES: dict[str, ReadDamage] = {
    "in-sync-is-this": _leads(_recorded([1, 2], [1])),
    "in-sync-are-both": _none(_recorded([1, 2], [2, 1])),
    "in-sync-is-one-that-is-fenced": _none(_recorded([1, 2], [2])),
    "led-beside-one-that-runs": _leads(_recorded([1, 2], [1, 2], leader=1, is_fenced=False)),
    "led-by-one-that-runs": _leads(_recorded([1, 2], [2], leader=2, is_fenced=False)),
    "eligible-is-this": _leads(_recorded([1, 2], [], [1], [1])),
    "eligible-is-one-that-is-fenced": _none(_recorded([1, 2], [], [2], [2])),
    "last-known-is-this": _leads(_recorded([1, 2], [], [], [1])),
    "last-known-is-another": _none(_recorded([1, 2], [], [], [2])),
    "none-is-in-sync": _none(_recorded([1], [])),
    "unclean-election-of-topic": _leads(
        _recorded([1, 2], [2], [], [], -1, config_record(2, "orders", _ALLOWED, "true"))
    ),
    "unclean-election-of-cluster": _leads(
        _recorded([1, 2], [2], [], [], -1, config_record(4, "", _ALLOWED, "true"))
    ),
    "unclean-election-of-server": _leads(
        all_of(
            _recorded([1, 2], [2]),
            changed("server.properties", "num.partitions=1", f"{_ALLOWED}=true"),
        )
    ),
    "in-sync-unclean-stop": _none(all_of(_recorded([1, 2], [1]), _UNCLEAN)),
    "in-sync-other-epoch": _none(
        all_of(_recorded([1, 2], [1]), changed("d2/.kafka_cleanshutdown", "64", "63"))
    ),
    "in-sync-led-unclean-stop": _leads(all_of(_recorded([1, 2], [1], leader=1), _UNCLEAN)),
    "in-sync-both-unclean-stop": _none(all_of(_recorded([1, 2], [1, 2]), _UNCLEAN)),
    "led-beside-eligible-unclean-stop": _none(all_of(_recorded([1, 2], [1], [2], [], 1), _UNCLEAN)),
    "eligible-unclean-stop": _leads(all_of(_recorded([1, 2], [], [1], [1]), _UNCLEAN)),
    "eligible-both-unclean-stop": _none(all_of(_recorded([1, 2], [], [1, 2], [2]), _UNCLEAN)),
    "without-eligible-unclean-stop": _leads(
        all_of(_recorded([1, 2], [1], [], [], -1, _WITHOUT_ELIGIBLE), _UNCLEAN)
    ),
    "directory-lost": _leads(_recorded([1], [], [1], [1], place=_LOST)),
    "no-replica-here": ReadDamage(_recorded([2], [2]), set_aside=_ORDERS, leaderless=_ORDERS),
}
