"""The options that commands and jobs share."""

from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner

from kafkalog.views.options.click_options import output_dir_option, settings_options, topic_option
from kafkalog.views.options.option_names import usage_error_text


@dataclass(frozen=True)
class Chosen:
    topics: tuple[str, ...]


def test_options_of_a_settings_class_arrive_as_one_object() -> None:
    found: list[object] = []

    @click.command()
    @output_dir_option("Where to write.")
    @settings_options(Chosen, "chosen", topic_option())
    def command(output_dir: str, chosen: Chosen) -> None:
        found.extend((output_dir, chosen))

    given = ["--topic", "a", "--output-dir", "out", "--topic", "b"]
    assert CliRunner().invoke(command, given).exit_code == 0
    assert found == ["out", Chosen(("a", "b"))]
    assert "Missing option '--output-dir'" in CliRunner().invoke(command, []).output


def test_an_option_that_people_try_first_is_answered_with_the_one_that_there_is() -> None:
    @click.command("list")
    @click.option("--from-time")
    @click.option("--format")
    @click.option("--output-dir")
    def listed(**given: str) -> None:
        raise AssertionError(given)

    # difflib alone finds --out more similar to --format.
    for tried, answer in (
        ("--after", ": use --from-time"),
        ("--quick", ""),
        ("--out", ": did you mean --output-dir?"),
        ("--output_dir", ": did you mean --output-dir?"),
    ):
        with pytest.raises(click.UsageError) as raised:
            listed.main([tried, "-7d"], prog_name="list", standalone_mode=False)
        expected = f"No such option '{tried}'{answer} (see list --help)"
        assert usage_error_text(raised.value) == expected


def test_a_missing_choice_is_an_error_in_a_line() -> None:
    @click.command("convert")
    @click.option("--to", type=click.Choice(["csv", "json"]), required=True)
    def convert(to: str) -> None:
        raise AssertionError(to)

    with pytest.raises(click.UsageError) as raised:
        convert.main([], prog_name="convert", standalone_mode=False)
    assert usage_error_text(raised.value) == (
        "Missing option '--to'. Choose from: csv, json (see convert --help)"
    )
