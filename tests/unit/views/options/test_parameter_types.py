"""Values of the options that commands and jobs share."""

import re

import click
import pytest

from kafkalog.views.options.parameter_types import (
    NODE_ADDRESS,
    Duration,
    GivenOffsets,
    Offsets,
    Pattern,
    found_node,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10:20", GivenOffsets(None, 10, 20)),
        ("10:", GivenOffsets(None, 10, None)),
        (":20", GivenOffsets(None, None, 20)),
        ("7", GivenOffsets(None, 7, 8)),
        ("orders-0=10:20", GivenOffsets(("orders", 0), 10, 20)),
        ("orders-eu-12=:0", GivenOffsets(("orders-eu", 12), None, 0)),
        ("orders-0=5:5", GivenOffsets(("orders", 0), 5, 5)),
        ("orders-0=:", GivenOffsets(("orders", 0), None, None)),
        ("a-1-2=:", GivenOffsets(("a-1", 2), None, None)),
        ("9223372036854775806:", GivenOffsets(None, 2**63 - 2, None)),
    ],
)
def test_offsets_are_a_range_of_one_partition_or_of_all(text: str, expected: GivenOffsets) -> None:
    assert Offsets().convert(text, None, None) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "a:b", "-1:5", "20:10", "5:5", ":0", "orders=1:2", "orders-0=", "=1:2", "1:2:3"),
        *("orders-0=5:4", "1:9223372036854775808", "9223372036854775807"),
    ],
)
def test_other_offsets_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is not|FROM|TOPIC-PARTITION"):
        Offsets().convert(text, None, None)


def test_a_pattern_has_to_be_a_regular_expression() -> None:
    assert Pattern().convert("^orders", None, None) == "^orders"
    with pytest.raises(click.BadParameter, match=r"'\(' is not a valid regular expression"):
        Pattern().convert("(", None, None)


@pytest.mark.parametrize("text", ["0s", "0ms", "0d"])
def test_no_time_is_a_duration_except_where_rows_are_that_far_apart(text: str) -> None:
    assert Duration().convert(text, None, None) == 0
    with pytest.raises(click.BadParameter, match=f"'{text}' is too short: 1ms or longer"):
        Duration(least_ms=1).convert(text, None, None)
    with pytest.raises(click.BadParameter, match="'0' is not a duration: a number and ms, s, m"):
        Duration().convert("0", None, None)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("1@host-1:9093", "host-1"),
        ("1@[::1]:9093", "[::1]"),
        ("1@::1:9093", None),
        ("1@host-1:0", None),
        ("1@host-1:65536", None),
        ("host-1:9093", None),
    ],
)
def test_a_node_has_an_id_a_host_and_a_port(text: str, host: str | None) -> None:
    """An IPv6 address has brackets, as in a URL (RFC 3986, 3.2.2)."""
    found = found_node(re.compile(NODE_ADDRESS), text)
    assert (found and found["host"]) == host
