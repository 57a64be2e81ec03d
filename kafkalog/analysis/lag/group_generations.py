"""Generations of groups over time, from view `group_metadata`. Rule: docs/format.md F339."""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from kafkalog.analysis.lag.groups import GROUP_KEY
from kafkalog.schemas import table_fields

_GROUP = (*GROUP_KEY, "group_type")
_IDS = "array<string>"
_OWNED = "array<struct<topic string, partition int, member_id string>>"
# What the names of the records of consumer, share and streams groups end in.
_GENERATION = "Metadata"
_MEMBER = "MemberMetadata"
_ASSIGNMENT = "TargetAssignmentMetadata"
_MEMBER_ASSIGNMENT = "TargetAssignmentMember"
_CURRENT = "CurrentMemberAssignment"


def group_generations(records: DataFrame) -> DataFrame:
    """Return a row for each generation of a group and for each deletion of one:
    schemas/tables/group_generations.json."""
    classic = _classic(records.where("group_type = 'classic'"))
    return classic.unionByName(_with_epochs(records.where("group_type != 'classic'")))


def _table(rows: DataFrame, **columns: Column) -> DataFrame:
    """Return the rows with these columns; columns that compare two generations are null if there is
    only one."""
    is_compared = F.col("epoch").isNotNull() & F.col("epoch_before").isNotNull()
    compared = ("members_joined", "members_left", "partitions_moved")
    columns |= {name: F.when(is_compared, columns[name]) for name in compared}
    named = {"generation": F.col("epoch"), "previous_generation": F.col("epoch_before")}
    names = (field["name"] for field in table_fields("group_generations"))
    return rows.withColumns(named | columns).select(*names)


def _in_order() -> WindowSpec:
    return Window.partitionBy(*_GROUP).orderBy("record_offset")


def _up_to_here() -> WindowSpec:
    return _in_order().rowsBetween(Window.unboundedPreceding, Window.currentRow)


def _classic(records: DataFrame) -> DataFrame:
    """Return the generations of classic groups: a record has all of one."""
    owned = F.flatten(F.transform("members", lambda member: _owned(member["assigned"], member)))
    rows = records.withColumns(
        {
            "ids": F.transform("members", lambda member: member["member_id"]),
            "owned": owned.cast(_OWNED),
        }
    )
    before = {name: F.lag(name).over(_in_order()) for name in ("epoch", "ids", "owned")}
    return _table(
        rows.withColumns({f"{name}_before": column for name, column in before.items()}),
        members=F.size("ids"),
        members_joined=F.sort_array(F.array_except("ids", "ids_before")),
        members_left=F.sort_array(F.array_except("ids_before", "ids")),
        partitions_moved=_distinct(F.array(_difference("owned_before", "owned"))),
        state=F.when(F.col("is_tombstone"), "Dead")
        .when(F.size("ids") == 0, "Empty")
        .when(F.size("ids") > 0, "Stable"),
    )


def _owned(assigned: Column, member: Column) -> Column:
    """Return a member's partitions one by one, of topics by name or by id."""
    return F.flatten(
        F.transform(
            assigned,
            lambda topic: F.transform(
                topic["partitions"],
                lambda partition: F.struct(
                    F.coalesce(topic["topic"], topic["topic_id"]).alias("topic"),
                    partition.alias("partition"),
                    member["member_id"].alias("member_id"),
                ),
            ),
        )
    )


def _difference(before: str, after: str) -> Column:
    """Return the partitions that a member has before or after, but not both."""
    changed = F.concat(F.array_except(before, after), F.array_except(after, before))
    return F.transform(changed, lambda each: F.struct(each["topic"], each["partition"]))


def _distinct(lists: Column) -> Column:
    """Return how many elements all lists have, null if one is null."""
    return F.when(F.flatten(lists).isNotNull(), F.size(F.array_distinct(F.flatten(lists))))


def _with_epochs(records: DataFrame) -> DataFrame:
    """Return the generations of consumer, share and streams groups: a record has only the epoch,
    and records before it contain what it changes. A member's change belongs to the first epoch that
    is recorded after it."""
    part = F.regexp_replace("record_name", "^(Consumer|Share|Streams)Group", "")
    rows = records.withColumn("part", part).withColumns(
        {
            "generation_at": _next(_GENERATION),
            "assignment_at": _next(_ASSIGNMENT),
            "in_generation": F.last(_offset_of(_GENERATION), ignorenulls=True).over(_up_to_here()),
            "life": F.count_if((F.col("part") == _GENERATION) & F.col("is_tombstone")).over(
                _in_order().rowsBetween(Window.unboundedPreceding, -1)
            ),
        }
    )
    generations = rows.where(F.col("part") == _GENERATION).withColumn(
        "epoch_before", F.lag("epoch").over(_in_order())
    )
    found = _joined(generations, _member_changes(rows), "generation_at")
    found = _joined(found, _assignments(rows), "life", "epoch")
    found = _joined(found, _settled(rows), "in_generation", "epoch")
    count = F.sum(F.coalesce("more", F.lit(0))).over(_up_to_here()).cast("int")
    no_members = F.array().cast(_IDS)
    return _table(
        found.withColumn("count", count),
        members=F.when(~F.col("is_tombstone"), F.col("count")),
        members_joined=F.coalesce("joined", no_members),
        members_left=F.coalesce("left", no_members),
        partitions_moved=F.when(F.col("group_type") != "streams", F.col("moved")),
        state=F.when(F.col("is_tombstone"), "Dead")
        .when(F.col("epoch").isNull(), None)  # a record that cannot be read
        .when(F.col("count") == 0, "Empty")
        .when(F.col("group_type") == "share", "Stable")
        .when(F.col("group_type") == "consumer", _state_of_consumers()),
    )


def _offset_of(part: str) -> Column:
    return F.when(F.col("part") == part, F.col("record_offset"))


def _next(part: str) -> Column:
    """Return the offset of the next such record."""
    ahead = _in_order().rowsBetween(Window.currentRow, Window.unboundedFollowing)
    return F.min(_offset_of(part)).over(ahead)


def _joined(rows: DataFrame, other: DataFrame, *keys: str) -> DataFrame:
    """Return the rows with the columns of `other` where it has a row of the same keys."""
    names = (*_GROUP, *keys)
    # Aliases, for both come from the same records: Spark would compare a column with itself.
    same = [F.col(f"rows.{name}").eqNullSafe(F.col(f"other.{name}")) for name in names]
    added = [F.col(f"other.{name}") for name in other.columns if name not in names]
    found = rows.alias("rows").join(other.alias("other"), reduce(and_, same), "left")
    return found.select("rows.*", *added)


def _member_changes(rows: DataFrame) -> DataFrame:
    """Return for each generation who joined, who left, and how the number of members changed."""
    of_member = Window.partitionBy(*_GROUP, "member_id").orderBy("generation_at")
    is_there = ~F.col("has_left")
    was_there = F.coalesce(~F.lag("has_left").over(of_member), F.lit(False))
    changes = (
        rows.where((F.col("part") == _MEMBER) & F.col("generation_at").isNotNull())
        .groupBy(*_GROUP, "generation_at", "member_id")
        .agg(
            F.max_by("is_tombstone", "record_offset").alias("has_left"),
            F.bool_and("is_tombstone").alias("only_went"),
        )
        .withColumn("was_there", was_there)
    )
    came = is_there & ~F.col("was_there")
    went = ~is_there & (F.col("was_there") | F.col("only_went"))
    more = F.when(came, 1).when(~is_there & F.col("was_there"), -1).otherwise(0)
    return changes.groupBy(*_GROUP, "generation_at").agg(
        F.sort_array(F.collect_list(F.when(came, F.col("member_id")))).alias("joined"),
        F.sort_array(F.collect_list(F.when(went, F.col("member_id")))).alias("left"),
        F.sum(more).alias("more"),
    )


def _assignments(rows: DataFrame) -> DataFrame:
    """Return for each epoch how many partitions moved to another member than in the assignment
    before; null for the first that is recorded."""
    of_member = Window.partitionBy(*_GROUP, "member_id").orderBy("record_offset")
    none = F.array().cast(_OWNED)
    after = F.coalesce(_owned(F.col("assigned"), F.struct("member_id")).cast(_OWNED), none)
    moved = (
        rows.where(F.col("part") == _MEMBER_ASSIGNMENT)
        .withColumn("after", after)
        .withColumn("before", F.coalesce(F.lag("after").over(of_member), none))
        .groupBy(*_GROUP, "assignment_at")
        .agg(_distinct(F.collect_list(_difference("before", "after"))).alias("partitions"))
    )
    assigned = rows.where((F.col("part") == _ASSIGNMENT) & ~F.col("is_tombstone")).withColumn(
        "is_first", F.lag("epoch").over(_in_order()).isNull()
    )
    counted = F.when(~F.col("is_first"), F.coalesce("partitions", F.lit(0)))
    return (
        _joined(assigned, moved, "assignment_at")
        .groupBy(*_GROUP, "life", "epoch")
        .agg(F.sum(counted).cast("int").alias("moved"), F.lit(True).alias("is_assigned"))
    )


def _settled(rows: DataFrame) -> DataFrame:
    """Return how many members had reached each epoch, with all their partitions, before the next
    one."""
    is_there = (F.col("part") == _CURRENT) & ~F.col("is_tombstone")
    latest = (
        rows.where(is_there)
        .groupBy(*_GROUP, "in_generation", "member_id")
        .agg(F.max_by(F.struct("epoch", "member_state"), "record_offset").alias("latest"))
    )
    settled = latest.where("latest.member_state = 0").withColumn("epoch", F.col("latest.epoch"))
    return settled.groupBy(*_GROUP, "in_generation", "epoch").agg(F.count("*").alias("settled"))


def _state_of_consumers() -> Column:
    settled = F.coalesce("settled", F.lit(0))
    return (
        F.when(F.col("is_assigned").isNull(), "Assigning")
        .when(settled >= F.col("count"), "Stable")
        .otherwise("Reconciling")
    )
