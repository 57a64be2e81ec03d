"""What is said of damage that a read passes over."""

from __future__ import annotations

from kafkalog.log_lines import logger
from kafkalog.views.options.options import Mode

_logger = logger(__name__)

# Of so many damaged places in one log each has a line in the log; the rest is counted.
_LOGGED = 20


class PassedDamage:
    """Counts damaged places. In mode PERMISSIVE the first of them are logged as well."""

    def __init__(self, mode: Mode) -> None:
        self._is_logged = mode is Mode.PERMISSIVE
        self.count = 0

    def add(self, line: str) -> None:
        """Pass over a place, which `line` describes."""
        self.count += 1
        if self._is_logged and self.count <= _LOGGED:
            _logger.warning(line)

    def summarise(self, line: str) -> None:
        """At the end: log how many there were, if not every place had its own line."""
        if self._is_logged and self.count > _LOGGED:
            _logger.warning(line)
