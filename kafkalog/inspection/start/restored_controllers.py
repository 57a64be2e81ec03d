"""Controllers that were restored from older copies of the metadata, and what that costs them and
the other nodes. Rules: docs/format.md F1208, F1209 and F1291."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from shlex import quote

from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.format.side_files.quorum_state import QUORUM_STATE
from kafkalog.inspection.metadata.copies import MetadataCopy, copies_by_cluster
from kafkalog.inspection.metadata.quorum import Quorum, given_up
from kafkalog.inspection.start.reasons import Reason
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.words import counted, first_names

_MOST_TYPES = 5


def forgotten_epochs(logs: Iterable[PartitionLog]) -> Iterator[Reason]:
    """Yield the controllers that end because another one answers that they lead in an epoch which
    they do not know of. Rule: docs/format.md F1209."""
    for copies in copies_by_cluster(logs).values():
        with suppress(CorruptDataError, LogDirError):
            quorum = Quorum(copies)
            for copy in quorum.voters_here:
                other = quorum.forgotten_epoch(copy)
                if other is None or other.quorum_state is None:
                    continue
                own, newer = (os.path.join(each.path, QUORUM_STATE) for each in (copy, other))
                detail = (
                    f"node {copy.node_id} has led the controllers in epoch "
                    f"{other.quorum_state.leader_epoch}, by {newer}, and this file does not know "
                    f"that epoch: the node ends when node {other.node_id} tells it"
                )
                line = f"cp -p {quote(newer)} {quote(own)}"
                yield Reason(own, detail, line, os.path.dirname(copy.path))


def controllers_behind(logs: Iterable[PartitionLog], ended: Collection[str]) -> Iterator[Reason]:
    """Yield for each cluster the copy of a controller that can lead, and lacks what another node
    has; those in the log directories `ended` do not start. Rules: docs/format.md F1208 and
    F1291."""
    for copies in copies_by_cluster(logs).values():
        with suppress(CorruptDataError, LogDirError):
            quorum = Quorum(copies)
            leading = quorum.led_by_least(ended)
            # Where a broker has as much as a controller, the controller can lead.
            best = max(quorum.copies, key=lambda copy: (copy.position, quorum.is_voter(copy)))
            lost: dict[str, str] = {}
            for copy in quorum.copies:
                if copy is not leading and (words := _lost_words(given_up(copy, leading))):
                    lost[copy.path] = words
                    yield _more_than(leading, copy, quorum, words)
            if best.path not in lost:
                continue
            (epoch, end), (best_epoch, best_end) = leading.position, best.position
            here, all_voters = len(quorum.voters_here), len(quorum.voters)
            detail = (
                f"node {leading.node_id} lacks metadata that node {best.node_id} has, and can "
                f"still become the leader of the controllers ({here} of {all_voters} are here): "
                f"its copy ends at offset {end} of epoch {epoch}, that of node {best.node_id} at "
                f"{best_end} of epoch {best_epoch}. If it leads, the other nodes delete what it "
                f"lacks: {lost[best.path]}"
            )
            yield Reason(
                *(leading.path, detail, _newest_first(quorum, best), os.path.dirname(leading.path)),
                ends_process=False,
            )


def _lost_words(lost: Counter[str]) -> str:
    """Return how many records of each type a node gives up, an empty text for none."""
    return first_names([f"{number} {name}" for name, number in lost.most_common()], _MOST_TYPES)


def _more_than(leading: MetadataCopy, copy: MetadataCopy, quorum: Quorum, lost: str) -> Reason:
    """Return that a copy has records that the leading one lacks, which its node gives up unless it
    leads: `lost` says which. Rules: docs/format.md F1208 and F1291."""
    can_lead = " unless it leads" if quorum.is_voter(copy) else ""
    return Reason(
        copy.path,
        f"the metadata of node {copy.node_id} goes on to offset {copy.position[1]}, and the node "
        f"gives up what node {leading.node_id} lacks{can_lead}: {lost}",
        _newest_first(quorum, copy),
        os.path.dirname(copy.path),
        ends_process=False,
    )


def _newest_first(quorum: Quorum, best: MetadataCopy) -> str:
    """Return how the newest copy of the metadata comes to lead. Rule: docs/format.md F1208."""
    missing = len(quorum.voters) - len(quorum.voters_here)
    if quorum.is_voter(best):
        others = counted(quorum.majority - 1, "other controller")
        return (
            f"start node {best.node_id} and {others} first, so that only node {best.node_id} can "
            "lead; start the rest when kafka-metadata-quorum.sh --bootstrap-controller HOST:PORT "
            "describe --replication shows Lag 0"
        )
    elsewhere = f" ({counted(missing, 'controller')} that were not given may have one)"
    return (
        f"restore a newer copy of a controller before the start{elsewhere if missing else ''}; "
        f"without one: kafkalog quorum rebuild --help, which takes {quote(best.path)}"
    )
