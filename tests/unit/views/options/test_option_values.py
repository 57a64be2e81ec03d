"""Typed access to options: names in any case, values that are named when they are wrong."""

from enum import Enum

import pytest

from kafkalog.errors import OptionError
from kafkalog.views.options.option_values import OptionValues


class Color(Enum):
    RED = "red"
    DARK_BLUE = "darkBlue"


def values(**given: str) -> OptionValues:
    return OptionValues(
        given, ("someFlag", "someNumber", "someColor", "someList", "someTime", "kafka.known")
    )


@pytest.mark.parametrize("name", ["someList", "somelist", "SOMELIST"])
def test_names_may_be_in_any_case(name: str) -> None:
    assert values(**{name: "a"}).text("someList") == "a"


def test_an_option_that_is_not_given_is_none() -> None:
    options = values()
    assert (options.text("someList"), options.listed("someList")) == (None, None)


def test_an_empty_value_is_not_the_same_as_none() -> None:
    assert values(someList="").text("someList") == ""


def test_values_keep_their_case_and_spaces() -> None:
    assert values(someList=" Orders ").text("someList") == " Orders "


def test_an_unknown_option_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(OptionError) as caught:
        values(someColour="red")
    assert (caught.value.name, caught.value.value) == ("someColour", "red")
    for known in ("someFlag", "someNumber", "someColor", "someList"):
        assert known in str(caught.value)


def test_unknown_options_of_a_kafka_client_are_unused() -> None:
    given = {"kafka.known": "1", "kafka.bootstrap.servers": "a:9092", "Kafka.Group.Id": "g"}
    options = values(**given)
    assert options.unused == ["kafka.bootstrap.servers", "Kafka.Group.Id"]
    assert options.text("kafka.known") == "1"


@pytest.mark.parametrize("name", ["kafka", "kafkaX", "kafka_group", "spark.kafka.x"])
def test_what_only_resembles_a_clients_option_is_unknown(name: str) -> None:
    with pytest.raises(OptionError):
        values(**{name: "1"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", True), ("TRUE", True), ("True", True), ("false", False), ("False", False)],
)
def test_a_flag_is_true_or_false_in_any_case(value: str, expected: bool) -> None:
    flags = [values(someFlag=value).flag("someFlag", default=default) for default in (True, False)]
    assert flags == [expected, expected]


@pytest.mark.parametrize("default", [True, False])
def test_a_flag_that_is_not_given_has_its_default(default: bool) -> None:
    assert values().flag("someFlag", default=default) is default


@pytest.mark.parametrize("value", ["", "1", "0", "yes", "no", "t", "truefalse"])
def test_any_other_flag_is_an_error_naming_option_and_words(value: str) -> None:
    with pytest.raises(OptionError) as caught:
        values(someFlag=value).flag("someFlag", default=False)
    assert (caught.value.name, caught.value.value) == ("someFlag", value)
    assert "expected one of true, false" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", 1), ("42", 42), (" 7 ", 7), ("007", 7), (str(2**63 - 1), 2**63 - 1)],
)
def test_a_number_is_positive_and_whole(value: str, expected: int) -> None:
    assert values(someNumber=value).number("someNumber", default=5) == expected


def test_a_number_that_is_not_given_has_its_default() -> None:
    assert values().number("someNumber", default=5) == 5


@pytest.mark.parametrize(
    "value", ["", "0", "-1", "+1", "1.0", "1e3", "1_000", "0x10", "١", "128m", "many", str(2**63)]
)
def test_any_other_number_is_an_error_naming_option_and_limits(value: str) -> None:
    with pytest.raises(OptionError) as caught:
        values(someNumber=value).number("someNumber", default=5)
    assert (caught.value.name, caught.value.value) == ("someNumber", value)
    assert str(caught.value).endswith("from 1 to 9223372036854775807")


def test_a_number_may_have_a_limit_of_its_own() -> None:
    assert values(someNumber="9").number("someNumber", default=5, largest=9) == 9
    with pytest.raises(OptionError, match="from 1 to 9"):
        values(someNumber="10").number("someNumber", default=5, largest=9)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("red", Color.RED),
        (" Red ", Color.RED),
        ("darkBlue", Color.DARK_BLUE),
        ("DARKBLUE", Color.DARK_BLUE),
    ],
)
def test_a_choice_is_a_word_in_any_case(value: str, expected: Color) -> None:
    assert values(someColor=value).choice("someColor", default=Color.RED) is expected


def test_a_choice_that_is_not_given_has_its_default() -> None:
    assert values().choice("someColor", default=Color.DARK_BLUE) is Color.DARK_BLUE


@pytest.mark.parametrize("value", ["", "green", "DARK_BLUE", "red,darkBlue"])
def test_any_other_choice_is_an_error_naming_option_and_words(value: str) -> None:
    with pytest.raises(OptionError) as caught:
        values(someColor=value).choice("someColor", default=Color.RED)
    assert (caught.value.name, caught.value.value) == ("someColor", value)
    assert "expected one of red, darkBlue" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        (" a , b.c-d ", ("a", "b.c-d")),
        (",a,,b,", ("a", "b")),
        ("B,a", ("B", "a")),
    ],
)
def test_a_list_is_words_with_commas_between(value: str, expected: tuple[str, ...]) -> None:
    # As Spark's Kafka source reads `subscribe`.
    assert values(someList=value).listed("someList") == expected


@pytest.mark.parametrize("value", ["", " ", ",", " , "])
def test_a_list_without_a_word_is_an_error_naming_the_option(value: str) -> None:
    with pytest.raises(OptionError) as caught:
        values(someList=value).listed("someList")
    assert (caught.value.name, caught.value.value) == ("someList", value)
    assert "commas" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected_ms"),
    [("15m", 900_000), ("500", 500), ("500ms", 500), ("30 s", 30_000), ("2H", 7_200_000),
     ("1d", 86_400_000), ("3min", 180_000)],
)  # fmt: skip
def test_a_duration_is_written_as_spark_writes_it(value: str, expected_ms: int) -> None:
    assert values(someTime=value).duration_ms("someTime", default=1) == expected_ms


@pytest.mark.parametrize("value", ["", "m", "-1s", "1.5h", "1 week", "9999999999999m"])
def test_any_other_duration_is_an_error_naming_the_option(value: str) -> None:
    with pytest.raises(
        OptionError, match=r"someTime: .* is not valid, expected .*500ms, 30s, 15m, 2h or 1d"
    ):
        values(someTime=value).duration_ms("someTime", default=1)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("5", 5),
        (" 1767225600000 ", 1_767_225_600_000),
        ("2026-01-01T01:00+01:00", 1_767_225_600_000),
    ],
)
def test_a_time_is_a_date_or_milliseconds(text: str, milliseconds: int) -> None:
    assert values(someTime=text).time_ms("someTime", default=0) == milliseconds


@pytest.mark.parametrize("text", ["soon", "", "0", "1969-12-31"])
def test_a_time_that_cannot_be_read_or_is_before_1970_is_an_error(text: str) -> None:
    with pytest.raises(
        OptionError, match=r"someTime: .* is not (a time: milliseconds|valid, expected)"
    ):
        values(someTime=text).time_ms("someTime", default=0)


def test_a_choice_that_is_misspelt_has_a_suggestion() -> None:
    with pytest.raises(OptionError, match=r"one of red, darkBlue; did you mean darkBlue\?$"):
        values(someColor="drkBlue").choice("someColor", default=Color.RED)
