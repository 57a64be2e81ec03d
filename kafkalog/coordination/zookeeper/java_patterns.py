"""Java's regular expressions as far as topic filters use them, in time that the pattern cannot
make run away: patterns are data here, and anybody's.

What is not read (look-around, back-references, possessive quantifiers, flags, properties, unions of
classes) is said, not guessed.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass

from kafkalog.errors import UnsupportedFormatError

# Filters can list many topics by their names.
MOST_NODES = 20_000
# Pairs of a part of the pattern and a place in the text that a match may look at.
MOST_LOOKS = 100_000
# Ends of parts that a match may follow.
MOST_STEPS = 4_000_000
MOST_REPEATS = 1000
DEEPEST_GROUP = 50
_WORD = frozenset(string.ascii_letters + string.digits + "_")
_DIGITS = frozenset(string.digits)
_SPACES = frozenset(" \t\n\x0b\f\r")
_LINE_ENDS = frozenset("\n\r\x85\u2028\u2029")
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACES}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_Accepts = Callable[[str], bool]


@dataclass(eq=False, slots=True, frozen=True)
class _Character:
    accepts: _Accepts


@dataclass(eq=False, slots=True, frozen=True)
class _Edge:
    is_end: bool


@dataclass(eq=False, slots=True, frozen=True)
class _Sequence:
    parts: tuple[_Node, ...]


@dataclass(eq=False, slots=True, frozen=True)
class _Choice:
    parts: tuple[_Node, ...]


@dataclass(eq=False, slots=True, frozen=True)
class _Repeat:
    part: _Node
    least: int
    most: int | None


_Node = _Character | _Edge | _Sequence | _Choice | _Repeat


class JavaPattern:
    """A compiled pattern. Raises UnsupportedFormatError for what is not read here, which includes
    what Java would refuse."""

    def __init__(self, pattern: str) -> None:
        self._root = _Parser(pattern).whole()
        self._too_much: str | None = None

    def matches(self, text: str) -> bool:
        """Whether the whole text matches. Raises UnsupportedFormatError where that is too much
        work to find out, and from then on for any text: there can be many."""
        if self._too_much is not None:
            raise UnsupportedFormatError(self._too_much)
        try:
            return len(text) in _Search(text).ends(self._root, 0)
        except UnsupportedFormatError as error:
            self._too_much = str(error)
            raise


class _Search:
    """Where matches of the parts of a pattern end in a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: dict[tuple[int, int], frozenset[int]] = {}
        self._steps = 0

    def ends(self, node: _Node, start: int) -> frozenset[int]:
        """Where matches of a node that begin at `start` can end; each is found once."""
        key = (id(node), start)
        if key not in self._known:
            if len(self._known) > MOST_LOOKS:
                raise self._refusal(MOST_LOOKS, "looks")
            self._known[key] = frozenset(self._found_ends(node, start))
        return self._known[key]

    def _refusal(self, most: int, what: str) -> UnsupportedFormatError:
        return UnsupportedFormatError(
            f"a pattern needs more than {most} {what} at {self._text[:100]!r}: too much work"
        )

    def _found_ends(self, node: _Node, start: int) -> set[int]:
        text = self._text
        if isinstance(node, _Character):
            return {start + 1} if start < len(text) and node.accepts(text[start]) else set()
        if isinstance(node, _Edge):
            return {start} if start == (len(text) if node.is_end else 0) else set()
        if isinstance(node, _Choice):
            return set().union(*(self._step(part, {start}) for part in node.parts))
        if isinstance(node, _Repeat):
            return self._repeated_ends(node, start)
        places = {start}
        for part in node.parts:
            places = self._step(part, places)
            if not places:
                break
        return places

    def _repeated_ends(self, node: _Repeat, start: int) -> set[int]:
        places = {start}
        for _ in range(node.least):
            before, places = places, self._step(node.part, places)
            if places == before:
                break  # and so it will be after any more
        reached, rounds = set(places), 0
        while places and (node.most is None or rounds < node.most - node.least):
            places = self._step(node.part, places) - reached
            reached |= places
            rounds += 1
        return reached

    def _step(self, node: _Node, places: set[int]) -> set[int]:
        found: set[int] = set()
        for place in places:
            ends = self.ends(node, place)
            self._steps += 1 + len(ends)
            if self._steps > MOST_STEPS:
                raise self._refusal(MOST_STEPS, "steps")
            found |= ends
        return found


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._nodes = 0

    def whole(self) -> _Node:
        node = self._choice(0)
        return node if self._at == len(self._pattern) else self._refuse("a parenthesis too many")

    def _refuse(self, what: str) -> _Node:
        raise UnsupportedFormatError(
            f"pattern {self._pattern[:200]!r}, character {self._at}: {what} is not read here"
        )

    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _takes(self, text: str) -> bool:
        if not self._pattern.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _choice(self, depth: int) -> _Node:
        if depth > DEEPEST_GROUP:
            return self._refuse("a group that deep")
        parts = [self._sequence(depth)]
        while self._takes("|"):
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else _Choice(tuple(parts))

    def _sequence(self, depth: int) -> _Node:
        parts: list[_Node] = []
        while self._next() not in ("", "|", ")"):
            if self._takes("\\Q"):
                quoted, _, rest = self._pattern[self._at :].partition("\\E")
                parts += [_literal(character) for character in quoted]
                self._at = len(self._pattern) - len(rest)
            else:
                parts.append(self._repeated(self._atom(depth)))
            self._nodes += 1
            if self._nodes + len(parts) > MOST_NODES:
                return self._refuse("a pattern that long")
        return _Sequence(tuple(parts))

    def _atom(self, depth: int) -> _Node:
        if self._takes("("):
            if self._next() == "?" and not self._takes("?:"):
                return self._refuse("a group with (?")
            node = self._choice(depth + 1)
            return node if self._takes(")") else self._refuse("a group without an end")
        if self._takes("["):
            return _Character(self._class())
        if self._takes("."):
            return _Character(lambda character: character not in _LINE_ENDS)
        if self._next() in ("^", "$"):
            return _Edge(self._character() == "$")
        if self._takes("\\"):
            return _Character(self._escaped())
        if self._next() in ("*", "+", "?", "{"):
            return self._refuse("a quantifier of nothing")
        return _literal(self._character())

    def _character(self) -> str:
        self._at += 1
        return self._pattern[self._at - 1 : self._at]

    def _escaped(self) -> _Accepts:
        name = self._character()
        if name.lower() in _CLASSES:
            members, is_negated = _CLASSES[name.lower()], name.isupper()
            return lambda character: (character in members) is not is_negated
        literal = _CONTROLS.get(name, name)
        if not name or (literal == name and name.isascii() and name.isalnum()):
            self._refuse(f"\\{name}")
        return lambda character: character == literal

    def _class(self) -> _Accepts:
        is_negated = self._takes("^")
        members: list[_Accepts] = []
        while not self._takes("]"):
            if self._next() in ("", "[") or self._pattern.startswith("&&", self._at):
                self._refuse("a class without an end, or of classes")
            members.append(self._class_member())
        if not members:
            self._refuse("an empty class")
        return lambda character: any(accepts(character) for accepts in members) is not is_negated

    def _class_member(self) -> _Accepts:
        if self._takes("\\"):
            accepts = self._escaped()
            if self._next() == "-" and self._pattern[self._at + 1 : self._at + 2] != "]":
                self._refuse("a range with such an end")
            return accepts
        first = self._character()
        if self._next() != "-" or self._pattern[self._at + 1 : self._at + 2] in ("]", ""):
            return lambda character: character == first
        self._at += 1
        last = self._character()
        if last in ("\\", "[") or last < first:
            self._refuse("a range with such an end")
        return lambda character: first <= character <= last

    def _repeated(self, node: _Node) -> _Node:
        least, most = self._counts()
        if (least, most) == (1, 1):
            return node
        if self._next() == "+" or (self._takes("?") and self._next() in ("*", "+", "?", "{")):
            return self._refuse("a quantifier of that kind")
        if self._next() in ("*", "{"):
            return self._refuse("a quantifier of a quantifier")
        return _Repeat(node, least, most)

    def _counts(self) -> tuple[int, int | None]:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._takes(sign):
                return counts
        if not self._takes("{"):
            return 1, 1
        text, _, _ = self._pattern[self._at :].partition("}")
        self._at += len(text) + 1
        least, comma, most = text.partition(",")
        numbers = [number for number in (least, most) if number or number is least]
        if not all(number.isascii() and number.isdigit() for number in numbers):
            self._refuse("such a count")
        # As Java does, zeros in front are passed over, however many.
        shortest = [number.lstrip("0") or "0" for number in numbers]
        if not all(len(count) <= 4 and int(count) <= MOST_REPEATS for count in shortest):
            self._refuse("such a count")
        fewest = int(shortest[0])
        last = int(shortest[1]) if most else None if comma else fewest
        if last is not None and last < fewest:
            self._refuse("such a count")
        return fewest, last


def _literal(literal: str) -> _Node:
    return _Character(lambda character: character == literal)
