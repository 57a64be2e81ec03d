"""Java's expressions as filters use them, and what no pattern may do. Rule: F456."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.coordination.zookeeper.java_patterns import JavaPattern
from kafkalog.errors import UnsupportedFormatError


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        (r"old\.codec-.*", ["old.codec-", "old.codec-gzip"], ["oldxcodec-gzip", "old.codec"]),
        ("a|b+", ["a", "b", "bb"], ["", "ab"]),
        ("(?:ab){1,2}c?", ["ab", "abab", "ababc"], ["c", "ababab"]),
        (r"[^\d_-]\w{3}", ["aaaa", "z_09"], ["1aaa", "aaa"]),
        (r"^\Qa.b\E$", ["a.b"], ["axb"]),
        ("", [""], ["a"]),
        ("x{2,}?", ["xx", "xxx"], ["x"]),
        ("[a-c-]*", ["a-c"], ["d"]),
        (r"[\.-z]", ["a", "."], ["-"]),
        ("[a-c&]+", ["a&"], ["d"]),
        ("é|.b", ["é", "€b"], ["e"]),
    ],
)
def test_whole_names_match(pattern: str, matching: list[str], others: list[str]) -> None:
    compiled = JavaPattern(pattern)
    assert [text for text in (*matching, *others) if compiled.matches(text)] == matching


@pytest.mark.parametrize(
    "pattern",
    [
        "(?!a).*", r"(a)\1", "a*+", "(?i)a", r"\p{L}", "[a[b]]", "[a-z&&[b]]", "(a", "a)", "*a",
        "[]", "[]a]", "a{2,1}", "a{99999999999}", "(" * 100, "a" * 2_000_000, "a**", "\\", "[", "{",
        "a{,2}", "a{02}", "a{000000000" + "9" * 5000 + "}", "a{1001}", "a{-1}", r"\E", r"\x41",
        "[[:alpha:]]", "(?<name>a)", "\ud800",
    ],
)  # fmt: skip
def test_a_pattern_that_java_and_re2_do_not_read_alike_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedFormatError, match="is not supported"):
        JavaPattern(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+b", "((a*)*)*b", "(a|a)*b", "(a?){500}a{500}"])
def test_no_pattern_runs_away(pattern: str) -> None:
    # Backtracking would take 2 ** 200 steps.
    assert not JavaPattern(pattern).matches("a" * 200 + "c")


@pytest.mark.timeout(60)
def test_the_largest_patterns_match_in_bounded_time() -> None:
    # Each needs 2 ** 900 states of a deterministic machine.
    pattern = JavaPattern("|".join(["[ab]*a[ab]{900}"] * 12))
    assert not any(pattern.matches("ab" * 120 + str(number)) for number in range(100))


def test_nested_counts_are_refused() -> None:
    pattern = "a*"
    for _ in range(40):
        pattern = f"({pattern}){{1000}}"
    with pytest.raises(UnsupportedFormatError, match="is not supported"):
        JavaPattern(pattern)
    assert JavaPattern("(" * 45 + "a{200}" + "){1}" * 45).matches("a" * 200)


def test_a_name_that_no_topic_can_have_does_not_match() -> None:
    assert not JavaPattern(".*").matches("a" * 256)
    assert not JavaPattern(".*").matches("\ud800")


def test_a_list_of_many_topics_is_read() -> None:
    topics = [f"a-topic-with-a-long-name-{number}" for number in range(3000)]
    pattern = JavaPattern("|".join(topics))
    assert pattern.matches(topics[-1]) and not pattern.matches("a-topic-with-a-long-name-")


PARTS = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\.", r"\w"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@given(PARTS, st.text("ab.", max_size=6))
def test_it_matches_what_pythons_do_where_both_mean_the_same(pattern: str, text: str) -> None:
    assert JavaPattern(pattern).matches(text) == (re.fullmatch(pattern, text) is not None)


@given(st.text("ab()[]{}*+?|\\^$.-,19dQE&", max_size=20), st.text("ab9", max_size=5))
def test_any_pattern_is_read_or_refused(pattern: str, text: str) -> None:
    try:
        compiled = JavaPattern(pattern)
    except UnsupportedFormatError:
        return
    assert compiled.matches(text) in (True, False)
