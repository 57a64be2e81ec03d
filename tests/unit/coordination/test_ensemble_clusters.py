"""Clusters are not mixed: which one of an ensemble the log directories belong to."""

from __future__ import annotations

import pytest

from kafkalog.coordination.ensemble_clusters import EnsembleCluster, cluster_of_log_dirs
from kafkalog.errors import LogDirError, OptionError

ONE = EnsembleCluster("/zk1", "", "one", 100)
OTHER = EnsembleCluster("/zk1", "/other", "other", 100)
OLD = EnsembleCluster("/zk1", "/old", None, 100)


def test_the_cluster_has_the_id_of_the_log_directories() -> None:
    # F485: /cluster/id and meta.properties
    assert cluster_of_log_dirs([ONE, OTHER, OLD], ["other"]) is OTHER
    assert cluster_of_log_dirs([ONE, OTHER], ["one", None]) is ONE


def test_of_several_members_the_one_counts_that_has_come_furthest() -> None:
    # F485
    later = ONE._replace(input_path="/zk2", last_zxid=101)
    assert cluster_of_log_dirs([later, ONE], ["one"]) is later


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


def test_of_several_that_can_be_meant_one_has_to_be_named() -> None:
    # F485
    with pytest.raises(OptionError, match="one of the clusters: /, /old"):
        cluster_of_log_dirs([ONE, OLD], [None], allow_unknown=True)
    assert cluster_of_log_dirs([ONE, OLD], [None], chroot="/old", allow_unknown=True) is OLD
    with pytest.raises(OptionError, match="clusters there: /, /old"):
        cluster_of_log_dirs([ONE, OLD], ["one"], chroot="/nowhere")
