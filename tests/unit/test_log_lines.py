"""Log lines have no commands for a terminal."""

import pytest

from kafkalog.log_lines import logger


def test_names_in_a_log_line_are_escaped(caplog: pytest.LogCaptureFixture) -> None:
    logger("kafkalog.tests").warning("%s: %d left out", "a\x1b[2J\nb", 5)
    assert caplog.messages == ["a\\x1b[2J\\nb: 5 left out"]
