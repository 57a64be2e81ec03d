"""How far behind is each group, now or at a past time? Rules: docs/format.md F310 to F327, F780."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kafkalog.coordination.groups.group_records import Group, GroupKey, GroupMember, group_key
from kafkalog.coordination.groups.lag_question import LagQuestion
from kafkalog.inspection.groups.commit_reach import (
    CommitReach,
    commit_reaches,
    expired_words,
    reach_words,
)
from kafkalog.inspection.lag.lag_table import LagTotals
from kafkalog.inspection.lag.resumed_commits import again_words, ahead_words
from kafkalog.inspection.logs.missing_records import (
    MissingRecords,
    missing_words,
    note_missing_records,
)
from kafkalog.inspection.logs.past_copies import copy_words
from kafkalog.questions.groups.cluster_facts import cluster_facts
from kafkalog.questions.groups.group_parts import known_names
from kafkalog.questions.groups.lag_rows import LagRows
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from kafkalog.views.engine import Views
from kafkalog.words import age_text, counted

if TYPE_CHECKING:
    from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperCluster

# What a lag can be made of, in words.
_PARTS = {
    "readable_records": "to read",
    "control_records": "control",
    "aborted_records": "aborted",
    "gaps": "gaps",
    "beyond_last_stable": "in open transactions",
    "below_log_start": "deleted",
    "in_tiered_storage": "in tiered storage",
    "damaged": "damaged",
    "ahead_of_log": "ahead of the log",
}


class ConsumerLag:
    """The lag of groups: `rows` of table `consumer_lag` first, by one of its methods; then the
    rest."""

    def __init__(
        self,
        views: Views,
        question: LagQuestion,
        zookeeper: ZookeeperCluster | None = None,
        *,
        show: int = 0,
        with_groups: bool = False,
        with_members: bool = False,
    ) -> None:
        """`show` rows with most to read are kept; `with_groups`: all groups are wanted too,
        `with_members`: their members."""
        self._views, self.question, self._zookeeper = views, question, zookeeper
        at_ms = question.as_of_ms
        self.facts = cluster_facts(views, at_ms, zookeeper)
        cluster_id = in_zookeeper = None
        if zookeeper is not None:
            from kafkalog.questions.zookeeper.zookeeper_groups import zookeeper_commits

            cluster_id = zookeeper.cluster.cluster_id
            in_zookeeper = zookeeper_commits(zookeeper, at_ms)
        self.rows = LagRows(
            *(views, self.facts, question),
            show=show,
            with_groups=with_groups,
            with_members=with_members,
            cluster_id=cluster_id,
            in_zookeeper=in_zookeeper,
        )

    @property
    def totals(self) -> LagTotals:
        """The totals of the rows."""
        return self.rows.summary.totals

    @cached_property
    def groups(self) -> dict[GroupKey, Group]:
        """All groups, where they are wanted, those in ZooKeeper too."""
        found = {group.key: group for group in self.rows.known.groups}
        return found | {group.key: group for group in self._in_zookeeper[0]}

    @cached_property
    def members(self) -> list[GroupMember]:
        """The members of these groups."""
        return [*self.rows.known.members, *self._in_zookeeper[1]]

    @cached_property
    def _in_zookeeper(self) -> tuple[list[Group], list[GroupMember]]:
        if self._zookeeper is None:
            return [], []
        from kafkalog.questions.zookeeper.zookeeper_groups import groups_in_zookeeper

        return groups_in_zookeeper(self._zookeeper, self.question.as_of_ms)

    @cached_property
    def missing(self) -> list[MissingRecords]:
        """The records of groups that the input lacks. They are noted for the end of the run."""
        topics = (CONSUMER_OFFSETS, SHARE_GROUP_STATE)
        return [each for topic in topics for each in note_missing_records(self._views.logs, topic)]

    @cached_property
    def reaches(self) -> list[CommitReach]:
        """How far back the commits of each store reach."""
        known = [*self.rows.known.reaches]
        if self._zookeeper is not None:
            known.append(self._zookeeper.reach())
        missing = [each for each in self.missing if each.topic == CONSUMER_OFFSETS]
        return commit_reaches(known, missing)

    @property
    def no_group(self) -> str:
        """What a face says where no group is known; that there is none only where all commits are
        here (F940)."""
        return self.by_what_is_here("no group is known")

    def by_what_is_here(self, claim: str) -> str:
        """Return a claim about groups, limited to what is here where commits are missing."""
        is_whole = all(reach.is_whole for reach in self.reaches)
        return claim if is_whole else f"{claim} by what is here of {CONSUMER_OFFSETS}"

    @property
    def most_behind(self) -> list[dict[str, Any]]:
        """The rows that are shown, those with most to read first."""
        order = [("readable_records", "descending")]
        order += [(name, "ascending") for name in ("group_id", "topic", "partition")]
        return [_shown(row) for row in self.rows.summary.most_behind.sort_by(order).to_pylist()]

    def words(self) -> list[str]:
        """Return lines: how many groups lag, by how much, what is lost, what is not known, how far
        back commits reach, and which of the given names have no rows."""
        as_of_ms = self.question.as_of_ms
        shares = [each for each in self.missing if each.topic == SHARE_GROUP_STATE]
        return [
            *lag_words(self.totals, self.rows.known.group_count),
            *reach_words(self.reaches, as_of_ms).splitlines(),
            *copy_words(self.rows.past_copies),
            *([f"share groups: {missing_words(shares)}"] if shares else ()),
            *self.without_rows,
        ]

    @property
    def without_rows(self) -> list[str]:
        """A line for each given name of a group or topic that has no rows."""
        return self.question.chosen.words_without(
            self.rows.known.names, lambda: known_names(self._views, self._zookeeper)
        )

    @property
    def in_topics(self) -> str:
        """What a claim about lag ends with where it is of some topics."""
        return "" if self.question.chosen.is_topic is None else " in these topics"

    @property
    def findings(self) -> list[str]:
        """The findings, in words."""
        return lag_findings(self.totals, self.reaches, self.question.max_lag)

    @property
    def verdict(self) -> str:
        """A line with the findings. Where there is none it says that lag was not judged, if groups
        are behind and no --max-lag was given."""
        max_lag, behind = self.question.max_lag, self.totals.behind
        line = f"findings: {', '.join(self.findings) or 'none'}"
        if self.findings or max_lag is not None or not behind:
            return line
        are = "partition is" if behind == 1 else "partitions are"
        return f"{line}; {behind:,} {are} behind, which is a finding with --max-lag only"


def lag_words(totals: LagTotals, groups: int) -> list[str]:
    """Return lines: how many groups lag, by how much, what is lost, and what is not known."""
    head = f"{counted(groups, 'group')}, {counted(totals.partitions, 'partition')}"
    behind = f"{totals.behind:,} behind, {counted(totals.records, 'record')} to read"
    if totals.time_lag_ms is not None:
        age = age_text(totals.time_lag_ms)
        behind += f", the oldest {age} old" if totals.time_lag_ms >= 0 else f", the oldest {age}"
    stale = f"{counted(totals.stale, 'commit')} not counted"
    lost = f"offsets lost to deletion in {counted(totals.below_log_start, 'partition')}"
    lines = [f"{head}: {behind}; {stale}; {lost}, hidden by damage in {totals.damaged:,}"]
    if totals.waiting:
        lines.append(
            f"in {counted(totals.waiting, 'partition')} a commit waits for the end of its "
            "transaction"
        )
    if totals.expired:
        lines.append(expired_words(totals.expired))
    if totals.resumed:
        lines.append(again_words(totals.resumed))
    if totals.ahead:
        lines.append(ahead_words(totals.ahead))
    if totals.unknown:
        lines.append(
            f"lag unknown for {counted(totals.unknown, 'partition')}: no log in the input, or it "
            "starts after --as-of"
        )
    if totals.by_clocks:
        lines.append(
            f"for {counted(totals.by_clocks, 'partition')} the end offset at that time is inferred "
            "from producer timestamps: see high_watermark_from in docs/lag.md"
        )
    return lines


def lag_findings(
    totals: LagTotals, reaches: Sequence[CommitReach], max_lag: int | None
) -> list[str]:
    """Return the findings that --fail-on-findings fails on."""
    found = []
    if max_lag is not None and (totals.most_records or 0) > max_lag:
        found.append(f"{totals.most_records:,} records to read in one partition")
    if totals.below_log_start:
        found.append("offsets lost to deletion")
    if totals.damaged or any(reach.damaged_ranges for reach in reaches):
        found.append("damage")
    return found


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a row for a terminal."""
    made_of = (f"{row[name]:,} {words}" for name, words in _PARTS.items() if (row[name] or 0) > 0)
    age_ms = row["time_lag_ms"]
    return {
        **{name: row[name] for name in ("group_id", "topic", "partition", "committed_offset")},
        **{name: row[name] for name in ("high_watermark", "lag")},
        "made_of": ", ".join(made_of),
        "time_lag": None if age_ms is None else age_text(age_ms),
        "status": row["commit_status"],
        "group_state": row["group_state"],
        "stored_in": row["offset_storage"],
        # Consumers that ZooKeeper coordinates have no other name.
        "client": row["client_id"] or row["member_id"],
        "client_host": row["client_host"],
    }


CommittedOffsets = dict[tuple[GroupKey, str, int], int]
_COLUMNS = (*GroupKey._fields, "topic", "partition", "committed_offset", "group_state")


def committed_offsets(views: Views) -> CommittedOffsets:
    """Return the offsets by group, topic and partition, of groups that are not Dead, and where
    share groups begin (F780); without commits that wait for their transaction."""
    if not any(log.topic == CONSUMER_OFFSETS for log in views.logs):
        return {}
    rows = ConsumerLag(views, LagQuestion(0)).rows.commits_alone()
    return {
        (group_key(row), row["topic"], row["partition"]): row["committed_offset"]
        for row in rows.select(_COLUMNS).to_pylist()
        if row["committed_offset"] is not None and row["group_state"] != "Dead"
    }
