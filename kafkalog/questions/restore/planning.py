"""The plan of a restore: what of each partition is kept, how every transaction ends, and what is
left out. Rules: docs/restore.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.errors import LogDirError
from kafkalog.inspection.erasure.suppression import Suppression
from kafkalog.inspection.logs.missing_offsets import was_cleaned
from kafkalog.questions.restore.coordinator_records import CoordinatorRecord, coordinator_records
from kafkalog.questions.restore.into_cluster import IntoCluster
from kafkalog.questions.restore.metadata import RestoredMetadata
from kafkalog.questions.restore.nodes import Node
from kafkalog.questions.restore.partitions.partition_files import Ending
from kafkalog.questions.restore.partitions.partition_planning import plan_partition
from kafkalog.questions.restore.partitions.partition_plans import LATEST_MS, PartitionPlan, PlanTask
from kafkalog.questions.restore.sources import MetadataEnd, Sources
from kafkalog.questions.restore.tiers import PartitionKey
from kafkalog.questions.restore.transactions import (
    EndedTransaction,
    TransactionalId,
    Transactions,
    decided_after,
    highest_producer_id,
    incomplete_commits,
    known_markers,
    transactional_ids,
)
from kafkalog.storage.names import (
    CONSUMER_OFFSETS,
    REMOTE_LOG_METADATA,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from kafkalog.views.engine import Views
from kafkalog.words import time_text

# Their logs are recreated. The metadata of tiered storage names objects of the old bucket.
REWRITTEN_TOPICS = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE, REMOTE_LOG_METADATA)
# What the cluster can have written, and how often it can have elected leaders, after the copies
# were made: clients know of it.
UNSEEN_OFFSETS = 1_000_000
_UNSEEN_EPOCHS = 1000


@dataclass(frozen=True)
class RestoreRequest:
    """What is restored: the cluster as of `as_of_ms`, on `nodes`. Logs go on `offset_gap` offsets
    after the end of the copies, unless `reuses_offsets`: at the cut. `is_topic_chosen` and
    `is_group_chosen` select by name. Topics in `latest_topics` are not cut at the moment, nor is
    any with `is_uncut`: there are the disks of one node, and the moment is their end. Records of
    `suppression` are left out. With `into` there are only partitions, for a cluster that exists,
    whose brokers are the `nodes`."""

    as_of_ms: int
    nodes: Sequence[Node]
    cluster_id: str
    now_ms: int
    replication: int = 1
    links: bool = False
    hashes_inputs: bool = False
    creates_missing: bool = False
    reuses_offsets: bool = False
    offset_gap: int = UNSEEN_OFFSETS
    keeps_retention: bool = False
    is_topic_chosen: Callable[[str], bool] = lambda topic: True
    is_group_chosen: Callable[[str], bool] = lambda group: True
    latest_topics: Sequence[str] = ()
    is_uncut: bool = False
    suppression: Suppression | None = None
    into: IntoCluster | None = None

    @property
    def cut_ms(self) -> int:
        """The time after which records are cut off."""
        return LATEST_MS if self.is_uncut else self.as_of_ms


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A topic that is not restored, or a directory whose topic is not, and why."""

    topic: str
    topic_id: str | None
    reason: str
    is_chosen: bool = False


@dataclass
class RestorePlan:
    """All that is decided before anything is written. `plans` are of topics whose bytes are copied,
    `rewritten` of coordinators' topics, `records` their records."""

    request: RestoreRequest
    sources: Sources
    image: MetadataImage
    plans: list[PartitionPlan]
    rewritten: list[PartitionPlan]
    empty: list[tuple[str, int, str]]
    left_out: list[LeftOut]
    metadata: RestoredMetadata
    records: Mapping[tuple[str, int], list[CoordinatorRecord]]
    transactions: Transactions
    endings: dict[tuple[str, int], list[Ending]] = field(default_factory=lambda: defaultdict(list))
    ended: list[EndedTransaction] = field(default_factory=list)
    incomplete: list[tuple[str, str, int]] = field(default_factory=list)

    @cached_property
    def uncovered(self) -> list[PartitionPlan]:
        """The partitions of which no copy goes up to the moment."""
        as_of = self.request.as_of_ms
        return [
            plan
            for plan in (*self.plans, *self.rewritten)
            if plan.covered_ms is None or plan.covered_ms < as_of
        ]

    @property
    def bytes_to_write(self) -> int:
        """Bytes that are copied, on all nodes."""
        return sum(each.bytes * len(self.places_of(each)) for each in self.plans)

    @cached_property
    def ends(self) -> dict[tuple[str, int], int]:
        """Where each log that is copied ends, by topic and partition, markers included."""
        return {
            **{(topic, number): 0 for topic, number, _ in self.empty},
            **{plan.key: self._end(plan) for plan in self.plans},
        }

    def _end(self, plan: PartitionPlan) -> int:
        return plan.cut

    @cached_property
    def _ids(self) -> dict[str, str]:
        """The ids of the topics by name."""
        return {row["topic"]: key[0] for key, row in self.image.tables["topic"].items()}

    def leader_of(self, topic: str, partition: int) -> Node:
        """Return the node that leads a partition."""
        return self.nodes_of(self._ids[topic], partition)[0]

    @cached_property
    def nodes(self) -> Sequence[Node]:
        """The nodes that get a directory."""
        if self.request.into is None:
            return self.request.nodes
        ids = {node.node_id for each in self.plans for node in self.places_of(each)}
        return [node for node in self.request.nodes if node.node_id in ids]

    def places_of(self, plan: PartitionPlan) -> Sequence[Node]:
        """Return the nodes that the copied bytes of a partition are written for."""
        if self.request.into is not None:
            return self.request.into.nodes_of(*plan.key)
        return self.nodes_of(plan.topic_id, plan.partition)

    def nodes_of(self, topic_id: str, partition: int) -> Sequence[Node]:
        """Return the nodes that a partition is on, its leader first."""
        return self.metadata.placed[topic_id, partition]


def plan_restore(
    views: Views,
    sources: Sources,
    request: RestoreRequest,
    on_done: Callable[[int], None] = lambda size: None,
) -> RestorePlan:
    """Return the plan. `on_done` is called with the number of bytes of the copies that were looked
    at. Raises LogDirError for a moment that no disk covers, and where no metadata of that time is
    left."""
    _refuse_uncovered(sources, request)
    copy = sources.copy_at(request.as_of_ms)
    metadata = RestoredMetadata(
        copy,
        request.as_of_ms,
        request.nodes,
        request.cluster_id,
        sources.raft_epoch,
        {},
        {},
        -1,
        keeps_retention=request.keeps_retention,
    )
    image = metadata.image
    _refuse_nothing(image, request)
    topics = {key[0]: row["topic"] for key, row in image.tables["topic"].items()}
    wanted, empty, left_out = _wanted(sources, request, topics, image)
    plans = []
    for task, found in zip(wanted, views.tasks(plan_partition, wanted), strict=True):
        # Not the texts that came from another process with it.
        found.topic, found.topic_id = task.topic, task.topic_id
        plans.append(found)
        on_done(task.size)
    rewritten = [plan for plan in plans if plan.topic in REWRITTEN_TOPICS]
    records = _records(sources, rewritten)
    _cut_by_records(rewritten, records, request)
    ids = _transactional_ids(records, rewritten)
    plans = _with_limits(views, plans, wanted, decided_after(ids.values(), plans))
    rewritten = [plan for plan in plans if plan.topic in REWRITTEN_TOPICS]
    _cut_by_records(rewritten, records, request)
    copied = [plan for plan in plans if plan.topic not in REWRITTEN_TOPICS]
    if request.into is not None:
        _refuse_cluster(request.into, copied, image)
    epochs = leader_epochs(sources, plans, image)
    coordinators = [
        epoch for key, epoch in epochs.items() if topics.get(key[0]) == TRANSACTION_STATE
    ]
    transactions = Transactions(ids, max(coordinators, default=0), known_markers(plans))
    metadata.epochs = epochs
    metadata.placed = _placed(image, request)
    metadata.highest_producer_id = max(
        [
            highest_producer_id(ids.values()),
            *(plan.max_producer_id for plan in plans),
            *(each.next_producer_id - 1 for each in sources.ends),
        ]
    )
    metadata.left_out = [each for each in topics if each in {left.topic_id for left in left_out}]
    plan = RestorePlan(
        *(request, sources, image, copied, rewritten, empty, left_out, metadata, records),
        transactions,
    )
    plan.incomplete = incomplete_commits(
        ids.values(), {each.key: each for each in plans}, request.as_of_ms
    )
    _end_transactions(plan)
    return plan


def _refuse_uncovered(sources: Sources, request: RestoreRequest) -> None:
    latest = max(sources.coverage.values())
    if request.as_of_ms > latest:
        raise LogDirError(
            f"no disk covers that moment: the last record of the cluster's metadata is of "
            f"{time_text(latest)}"
        )


def _refuse_nothing(image: MetadataImage, request: RestoreRequest) -> None:
    if not image.tables["topic"]:
        raise LogDirError(
            f"the cluster had no topic at {time_text(request.as_of_ms)}: nothing is to be restored"
        )


def _refuse_cluster(
    into: IntoCluster, plans: Sequence[PartitionPlan], image: MetadataImage
) -> None:
    partitions: dict[str, int] = defaultdict(int)
    for plan in plans:
        partitions[plan.topic] += 1
    compacted = {topic for topic in partitions if "compact" in cleanup_policy(image, topic)}
    into.refuse(partitions, compacted)


def _wanted(
    sources: Sources, request: RestoreRequest, topics: Mapping[str, str], image: MetadataImage
) -> tuple[list[PlanTask], list[tuple[str, int, str]], list[LeftOut]]:
    """Return the partitions to plan; those that begin empty, with their topic ids; and what is left
    out."""
    tasks, empty, left_out = [], [], []
    partitions = defaultdict(list)
    for key in image.tables["partition"]:
        partitions[key[0]].append(key[1])
    for topic_id, topic in topics.items():
        numbers = partitions[topic_id]
        is_rewritten = topic in REWRITTEN_TOPICS
        if not is_rewritten and not request.is_topic_chosen(topic):
            left_out.append(LeftOut(topic, topic_id, "not chosen", is_chosen=True))
            continue
        missing = [each for each in numbers if (topic_id, each) not in sources.copies]
        if missing and not is_rewritten and not request.creates_missing:
            reason = f"no disk has a copy of {len(missing)} of its {len(numbers)} partitions"
            left_out.append(LeftOut(topic, topic_id, reason))
            continue
        empty += [(topic, each, topic_id) for each in missing]
        moment = LATEST_MS if topic in request.latest_topics else request.cut_ms
        tasks += [
            PlanTask(
                *(topic, each, topic_id, sources.copies[topic_id, each], moment),
                is_compacted=not is_rewritten
                and (
                    "compact" in cleanup_policy(image, topic)
                    # The broker's policy can be compact, or the topic's was.
                    or any(was_cleaned(copy.log) for copy in sources.copies[topic_id, each])
                ),
            )
            for each in numbers
            if (topic_id, each) in sources.copies
        ]
    others = {key[0]: copies[0].log.topic or "" for key, copies in sources.copies.items()}
    for topic_id, topic in others.items():
        if topic_id in topics:
            continue
        left_out.append(_of_another_time(sources, topic, topic_id, request.as_of_ms))
    left_out += [
        LeftOut(log.path, None, "no file says of which topic the directory is")
        for log in sources.unidentified
    ]
    tasks.sort(key=lambda task: (task.topic, task.partition))
    return tasks, empty, left_out


def _of_another_time(sources: Sources, topic: str, topic_id: str, as_of_ms: int) -> LeftOut:
    """Return a topic that has copies and is not in the metadata of the moment."""
    known = [
        copy.walk.last_ms
        for copy, end in zip(sources.metadata, sources.ends, strict=True)
        if topic_id in end.topics
    ]
    is_deleted = not any(each.log.is_live for each in sources.copies_of(topic_id))
    if min(known, default=as_of_ms + 1) <= as_of_ms:
        return LeftOut(topic, topic_id, "deleted before the moment", is_chosen=True)
    if known:
        return LeftOut(topic, topic_id, "created after the moment", is_chosen=True)
    if is_deleted:
        reason = "deleted before the moment, or created and deleted after it"
        return LeftOut(topic, topic_id, reason, is_chosen=True)
    return LeftOut(topic, topic_id, "not in the metadata that was given")


def cleanup_policy(image: MetadataImage, topic: str) -> str:
    """Return the cleanup.policy of a topic, as far as its configs say."""
    row = image.tables["config"].get(("topic", topic, "cleanup.policy"))
    return "delete" if row is None else str(row["value"])


def _records(
    sources: Sources, rewritten: Sequence[PartitionPlan]
) -> dict[tuple[str, int], list[CoordinatorRecord]]:
    return {
        plan.key: coordinator_records(
            [copy.log for copy in sources.copies[plan.topic_id, plan.partition]]
        )
        for plan in rewritten
        if plan.topic != REMOTE_LOG_METADATA
    }


def _cut_by_records(
    rewritten: Sequence[PartitionPlan],
    records: Mapping[tuple[str, int], list[CoordinatorRecord]],
    request: RestoreRequest,
) -> None:
    """Cut coordinators' logs at the first record after the moment that any copy has: the cleaner
    can have removed it from the copy that was walked."""
    for plan in rewritten:
        for record in records.get(plan.key, []):
            if record.time_ms > request.cut_ms or record.offset >= plan.cut:
                plan.cut = min(plan.cut, record.offset)
                break


def _transactional_ids(
    records: Mapping[tuple[str, int], list[CoordinatorRecord]], rewritten: Sequence[PartitionPlan]
) -> dict[str, TransactionalId]:
    states = [plan for plan in rewritten if plan.topic == TRANSACTION_STATE]
    return transactional_ids(
        {plan.partition: records[plan.key] for plan in states},
        {plan.partition: plan.cut for plan in states},
    )


def _with_limits(
    views: Views,
    plans: list[PartitionPlan],
    tasks: Sequence[PlanTask],
    limits: Mapping[tuple[str, int], int],
) -> list[PartitionPlan]:
    """Return the plans, those again whose cut is to be lower."""
    again = [
        replace(task, limit=limits[task.topic, task.partition])
        for task in tasks
        if (task.topic, task.partition) in limits
    ]
    changed = {plan.key: plan for plan in views.tasks(plan_partition, again)}
    return [changed.get(plan.key, plan) for plan in plans]


def leader_epochs(
    sources: Sources, plans: Sequence[PartitionPlan], image: MetadataImage
) -> dict[PartitionKey, int]:
    """Return the leader epoch of each partition: above every one that any copy has, and those that
    the cluster can have had since. Partitions of
    the transaction coordinators have one epoch, above all of them, which goes into markers."""
    found: dict[PartitionKey, int] = {}
    for end in (MetadataEnd.of(image), *sources.ends):
        for key, epoch in end.leader_epochs.items():
            found[key] = max(found.get(key, 0), epoch)
    for plan in plans:
        key = plan.topic_id, plan.partition
        found[key] = max(found.get(key, 0), plan.max_epoch)
    states = {
        topic_id
        for (topic_id,), row in image.tables["topic"].items()
        if row["topic"] == TRANSACTION_STATE
    }
    highest = max((epoch for key, epoch in found.items() if key[0] in states), default=0)
    return {
        key: (highest if key[0] in states else epoch) + _UNSEEN_EPOCHS
        for key, epoch in found.items()
        if key in image.tables["partition"]
    }


def _placed(image: MetadataImage, request: RestoreRequest) -> dict[PartitionKey, list[Node]]:
    """Return the nodes of each partition, leaders spread over them."""
    nodes = list(request.nodes)
    numbers = {topic_id: place for place, (topic_id,) in enumerate(image.tables["topic"])}
    orders = [
        [*nodes[start:], *nodes[:start]][: request.replication] for start in range(len(nodes))
    ]
    return {
        key: orders[(numbers.get(key[0], 0) + key[1]) % len(nodes)]
        for key in image.tables["partition"]
    }


def _end_transactions(plan: RestorePlan) -> None:
    for each in plan.plans:
        as_of = plan.request.as_of_ms
        is_covered = each.covered_ms is not None and each.covered_ms >= as_of
        for found in each.open:
            ending, said = plan.transactions.ending(each, found, is_covered=is_covered)
            plan.endings[each.key].append(ending)
            plan.ended.append(said)
