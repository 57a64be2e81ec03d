"""Java's regular expressions as far as topic filters use them, matched by RE2 in linear time.

Patterns are data and can come from anyone, so a matcher that backtracks is out of the question.
"""

from __future__ import annotations

import re

from kafkalog.errors import UnsupportedFormatError

# A compiled pattern of that size matches the name of a topic within some hundredths of a second.
_MOST_MEMORY = 1 << 20
# Brokers allow 249 characters, the oldest ones 255; an entry of ZooKeeper can have any name.
_LONGEST_NAME = 255
# What Java and RE2 read alike. Refused are look-around, back-references, flags, properties,
# possessive quantifiers, unions of classes, and a `{` or `[]` that only one takes literally.
_MEMBER = r"(?: \\[dDwWsStnrf] | \\[^a-zA-Z0-9] | &(?!&) | [^]\\[&] )"
_READ_ALIKE = re.compile(
    rf"""(?: \\Q .*? (?: \\E | \Z )
    | \\[dDwWsStnrf] | \\[^a-zA-Z0-9]
    | \[ \^? {_MEMBER}++ \]
    | \( (?: \?: | (?!\?) )
    | \{{ (?: 0 | [1-9][0-9]{{0,3}} ) (?: , (?: [1-9][0-9]{{0,3}} )? )? \}}
    | [^\\\[({{] )*+""",
    re.VERBOSE | re.DOTALL,
)


class JavaPattern:
    """A compiled pattern. Raises UnsupportedFormatError for a pattern that RE2 does not have, or
    reads in another way than Java."""

    def __init__(self, pattern: str) -> None:
        import re2

        read_alike = _READ_ALIKE.match(pattern)
        end = read_alike.end() if read_alike else 0
        if end < len(pattern):
            raise _unsupported(pattern, f"what begins at character {end}")
        options = re2.Options()
        options.log_errors, options.never_capture, options.max_mem = False, True, _MOST_MEMORY
        try:
            self._compiled = re2.compile(pattern, options)
        except (re2.error, UnicodeEncodeError) as error:
            raise _unsupported(pattern, str(error)) from None

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches."""
        if len(text) > _LONGEST_NAME:
            return False
        try:
            return self._compiled.fullmatch(text) is not None
        except UnicodeEncodeError:  # half of a surrogate pair
            return False


def _unsupported(pattern: str, reason: str) -> UnsupportedFormatError:
    return UnsupportedFormatError(f"pattern {pattern[:200]!r} is not supported: {reason}")
