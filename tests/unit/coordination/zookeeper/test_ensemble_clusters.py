"""Clusters are not mixed: which one of an ensemble the log directories belong to."""

import pytest

from kafkalog.coordination.zookeeper.ensemble_clusters import (
    EnsembleCluster,
    cluster_of_log_dirs,
    members_by_cluster,
)
from kafkalog.errors import LogDirError, OptionError

ONE = EnsembleCluster("/zk1", "", "one", "0x2 1", 100)
OTHER = EnsembleCluster("/zk1", "/other", "other", "0x9 2", 100)
OLD = EnsembleCluster("/zk1", "/old", None, "0x5 1", 100)


def test_the_cluster_has_the_id_of_the_log_directories() -> None:
    # F485: /cluster/id and meta.properties
    assert cluster_of_log_dirs([ONE, OTHER, OLD], ["other"]) is OTHER
    assert cluster_of_log_dirs([ONE, OTHER], ["one", None]) is ONE


def test_of_several_members_the_one_counts_that_has_come_furthest() -> None:
    # F485
    later = ONE._replace(input_path="/zk2", zxid=101)
    assert cluster_of_log_dirs([later, ONE], ["one"]) is later
    ahead = OLD._replace(input_path="/zk2", zxid=101)
    assert cluster_of_log_dirs([OLD, ahead], [None], allow_unknown=True) is ahead
    assert members_by_cluster([OLD, ONE, ahead, later]) == [[ahead, OLD], [later, ONE]]


def test_a_member_may_not_know_the_id_yet() -> None:
    # F485: /cluster/id was made when the brokers came to be 0.10.1
    later = OLD._replace(input_path="/zk2", cluster_id="old", zxid=101)
    assert members_by_cluster([OLD, later]) == [[later, OLD]]
    assert cluster_of_log_dirs([OLD, later], ["old"]) is later


def test_clusters_are_never_mixed() -> None:
    # F485
    with pytest.raises(OptionError, match=r"cluster one, other.*cluster third"):
        cluster_of_log_dirs([ONE, OTHER], ["third"], allow_unknown=True)
    with pytest.raises(OptionError, match=r"cluster other.*cluster one"):
        cluster_of_log_dirs([ONE, OTHER], ["one"], chroot="/other", allow_unknown=True)
    with pytest.raises(LogDirError, match="several clusters: one, other"):
        cluster_of_log_dirs([ONE], ["other", "one"])


def test_an_id_that_is_not_known_has_to_be_vouched_for() -> None:
    # F485: clusters before 0.10.1 have none, log directories before 2.4 name none
    for found, log_dir_ids in (([OLD], ["one"]), ([ONE], [None]), ([OLD], [])):
        with pytest.raises(OptionError, match="--allow-unknown-cluster"):
            cluster_of_log_dirs(found, log_dir_ids)
        assert cluster_of_log_dirs(found, log_dir_ids, allow_unknown=True) is found[0]


def test_files_without_a_cluster_are_no_fault_of_an_option() -> None:
    # F485
    for chroot in (None, "/kafka"):
        with pytest.raises(LogDirError, match="hold no Kafka cluster: give a newer snapshot"):
            cluster_of_log_dirs([], ["one"], chroot=chroot)


def test_of_several_that_can_be_meant_one_has_to_be_named() -> None:
    # F485
    with pytest.raises(OptionError, match="one of the clusters: /, /old"):
        cluster_of_log_dirs([ONE, OLD], [None], allow_unknown=True)
    assert cluster_of_log_dirs([ONE, OLD], [None], chroot="/old", allow_unknown=True) is OLD
    with pytest.raises(OptionError, match="clusters there: /, /old"):
        cluster_of_log_dirs([ONE, OLD], ["one"], chroot="/nowhere")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ONE, ONE._replace(input_path="/zk2", cluster_id="two", made="0x3 1")),
        (ONE, ONE._replace(input_path="/zk2", cluster_id=None, made="0x3 1")),
        (OLD, OLD._replace(input_path="/zk2", made="0x3 1")),
    ],
)
def test_two_clusters_at_the_same_root_are_not_taken_for_one(
    one: EnsembleCluster, other: EnsembleCluster
) -> None:
    # F485
    for found in ([one, other], [other, one._replace(zxid=99)]):
        with pytest.raises(OptionError, match=r"/zk1; cluster .* in /zk2"):
            cluster_of_log_dirs(found, [None], allow_unknown=True)
