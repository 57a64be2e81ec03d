"""Any znodes below a cluster's root can be audited, and any changes of them replayed. Rules: F445
to F449, F461, F466."""

import json
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from kafkalog.coordination.zookeeper.consumer_audit import group_audit
from kafkalog.coordination.zookeeper.disk_audit import Disk, DiskPartition, disk_findings
from kafkalog.coordination.zookeeper.found_cluster import FoundZnode
from kafkalog.coordination.zookeeper.ownership_history import (
    CREATE,
    DELETE,
    SESSION_END,
    SET_DATA,
    Ownership,
    OwnershipReplay,
    ZnodeChange,
)
from tests.support.zookeeper.clusters import found_cluster

NAMES = st.sampled_from(["t", "u", "t-x", "0", "1", "0-1", "ids", "a", "partitions", "é", "x y"])
PATHS = st.one_of(
    *(
        st.lists(NAMES, min_size=count, max_size=count).map(
            partial(lambda text, names: text.format(*names), text)
        )
        for text, count in (
            ("/brokers/ids/{}", 1),
            ("/brokers/topics/{}", 1),
            ("/brokers/topics/{}/{}", 2),
            ("/consumers/{}", 1),
            ("/consumers/{}/ids/{}", 2),
            ("/consumers/{}/owners/{}/{}", 3),
            ("/consumers/{}/offsets/{}/{}", 3),
            ("/admin/delete_topics/{}", 1),
            ("/cluster/{}", 1),
        )
    )
)
PATTERNS = st.sampled_from(["static", "white_list", "black_list", "?"])
SUBSCRIPTIONS = st.dictionaries(st.sampled_from(["t", "u", "t.*", "(", "[^t]"]), st.integers(-1, 3))
DATA = st.one_of(
    st.none(),
    st.binary(max_size=6),
    st.sampled_from([b"0", b"-5", b"a-0", b"a-1", b"\xc3\xa9-0", b"h:1", b"*2*t.*", b'{"t":2}']),
    st.integers(0, 4).map(
        lambda count: json.dumps({"partitions": {str(n): [0] for n in range(count)}}).encode()
    ),
    st.tuples(SUBSCRIPTIONS, PATTERNS).map(
        lambda pair: json.dumps({"subscription": pair[0], "pattern": pair[1]}).encode()
    ),
)
SESSIONS = st.integers(0, 2)
TREES = st.dictionaries(PATHS, st.tuples(DATA, SESSIONS), max_size=15)
DISKS = st.lists(
    st.tuples(NAMES, st.integers(0, 1), st.sampled_from([None, "delete", "future"])), max_size=4
)


@given(TREES, DISKS)
def test_any_znodes_can_be_audited(
    tree: dict[str, tuple[bytes | None, int]], names: list[tuple[str, int, str | None]]
) -> None:
    znodes = [FoundZnode(path, *value, 1, 2) for path, value in tree.items()]
    cluster = found_cluster(znodes)
    assert found_cluster(reversed(znodes)) == cluster
    for group_id, group in cluster.groups.items():
        audited = group_audit(group_id, group, cluster, {1})
        places = [partition.place for partition in audited.partitions]
        assert len(set(places)) == len(places)
        assert {*group.owners, *group.offsets} <= set(places)
    partitions = tuple(DiskPartition(f"{t}-{n}", t, n, mark) for t, n, mark in names)
    for finding in disk_findings(cluster, [Disk("/d", None, 0, partitions)]):
        assert finding.detail


@given(
    st.lists(
        st.tuples(PATHS, st.sampled_from([CREATE, SET_DATA, DELETE, SESSION_END]), DATA, SESSIONS),
        max_size=20,
    )
)
def test_ownerships_of_a_partition_never_overlap(
    changes: list[tuple[str, str, bytes | None, int]],
) -> None:
    replay = OwnershipReplay()
    ended: list[Ownership] = []
    for zxid, (path, change, data, session) in enumerate(changes, start=1):
        ended += replay.take(ZnodeChange(path, change, data, session, zxid, zxid))
    last: dict[object, int] = {}
    for each in [*ended, *replay.still_held()]:
        key = each.group_id, each.place
        claimed = each.claimed.zxid or 0
        assert claimed > last.get(key, 0)
        last[key] = (each.released.zxid if each.released else None) or claimed
        assert last[key] >= claimed
