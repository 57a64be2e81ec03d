"""Why a group does not read on: each reason on facts that are written out here. Rule: F781."""

import pytest

from kafkalog.coordination.groups.stuck_partitions import HoldingTransaction, PartitionOfGroup

NOON_MS = 1_700_000_000_000
ALIVE = PartitionOfGroup(
    "orders", 0, "consumer", "Stable", 1, "current", 10, 90, 5, False, 0, 0, 0, 12, NOON_MS, "m"
)
HOLDER = HoldingTransaction("orders", 0, 7, 88, False, "billing", "Ongoing", NOON_MS, 60_000)


@pytest.mark.parametrize(
    ("facts", "reason", "words"),
    [
        (ALIVE, "member_is_behind", "\n    kafkalog dump --deep --offsets 12:13 PATH"),
        (ALIVE._replace(to_read=0), "nothing_to_read", "nothing to do"),
        (ALIVE._replace(members=0, member=None), "no_members", "start one"),
        (ALIVE._replace(member=None), "not_assigned", "subscribe"),
        (ALIVE._replace(group_state="Reconciling"), "rebalancing", "Reconciling"),
        (ALIVE._replace(lost=3), "lost_records", "3 offsets from 10 on"),
        (ALIVE._replace(status="beyond_log_end", ahead=3), "beyond_log_end", "3 offsets before"),
        (ALIVE._replace(status="recreated_topic", ahead=3), "recreated_topic", "does not count"),
        (ALIVE._replace(to_read=0, damaged=2), "damaged", "kafkalog check"),
        (ALIVE._replace(status="deleted_topic"), "deleted_topic", "auto.offset.reset"),
        (ALIVE._replace(to_read=None), "unknown", "all brokers"),
        (ALIVE._replace(committed_offset=None, status="no_commit"), "no_commit", "log of m"),
        (ALIVE._replace(to_read=0, is_held=True, holder=HOLDER), "open_transaction", "offset 90"),
        (ALIVE._replace(pending_offset=17, holder=HOLDER), "pending_commit", "offset 17"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_reason_that_applies(facts: PartitionOfGroup, reason: str, words: str) -> None:
    found, advice = facts.why(NOON_MS)
    assert found == reason
    assert words in advice


@pytest.mark.parametrize(
    ("holder", "at_ms", "words"),
    [
        (HOLDER, NOON_MS, "in 60 s: wait"),
        (HOLDER, NOON_MS + 60_000, "as soon as it runs"),
        (HoldingTransaction("orders", 0, 7, 88, True), NOON_MS, "abort --topic orders"),
        (HoldingTransaction("orders", 0, 7, 88, False), NOON_MS, "not known"),
        (
            HoldingTransaction("orders", 0, 7, 88, False, "billing", "PrepareAbort", NOON_MS, 1),
            NOON_MS,
            "its state is PrepareAbort",
        ),
    ],
    ids=["ongoing", "over", "hanging", "no coordinator", "ending"],
)
def test_when_a_transaction_ends(holder: HoldingTransaction, at_ms: int, words: str) -> None:
    assert words in holder.words(at_ms)
