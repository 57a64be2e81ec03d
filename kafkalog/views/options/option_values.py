"""The user's options by their names in any case, with typed access."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from typing import TypeVar

from kafkalog.errors import OptionError, RefusedOptionError
from kafkalog.storage.files.storage_settings import PREFIX as STORAGE_PREFIX
from kafkalog.words import DURATIONS_ALLOWED, given_duration_ms, time_ms

_Choice = TypeVar("_Choice", bound=Enum)


def chosen(option: str, choices: type[_Choice], given: str) -> _Choice:
    """Return the choice of that value. Raises OptionError where there is none, which can come from
    Python alone."""
    try:
        return choices(given)
    except ValueError:
        raise OptionError(option, given, [each.value for each in choices]) from None


class OptionValues:
    """Options as Spark passes them: names in any case, values as strings.

    `known` has the valid names. Options that begin with `kafka.` belong to Kafka clients and are
    never unknown; `unused` lists those without effect on files. Options that begin with `storage.`
    belong to a remote file system, which checks them.
    """

    def __init__(self, given: Mapping[str, str], known: Sequence[str]) -> None:
        names = {name.lower(): name for name in known}
        self._values: dict[str, str] = {}
        self._storage: dict[str, str] = {}
        self.unused: list[str] = []
        for key, value in given.items():
            name = names.get(key.lower())
            if name is not None:
                self._values[name] = str(value)
            elif key.lower().startswith("kafka."):
                self.unused.append(key)
            elif key.lower().startswith(STORAGE_PREFIX):
                self._storage[key.lower().removeprefix(STORAGE_PREFIX)] = str(value)
            else:
                raise OptionError(key, value, _named(key, known))

    def storage(self) -> tuple[tuple[str, str], ...]:
        """Return the options `storage.*` by the lower-case rest of their names, sorted."""
        return tuple(sorted(self._storage.items()))

    def text(self, name: str) -> str | None:
        """Return the value, None if the option is not given."""
        return self._values.get(name)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return the value of an option that is true or false."""
        value = self._values.get(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise OptionError(name, value, ("true", "false"))
        return value.lower() == "true"

    def number(self, name: str, *, default: int, largest: int = 2**63 - 1) -> int:
        """Return the value of an option that is a positive whole number."""
        value = self._values.get(name)
        if value is None:
            return default
        if not re.fullmatch(r"[0-9]{1,19}", value.strip()) or not 1 <= int(value) <= largest:
            raise OptionError(name, value, f"a whole number from 1 to {largest}")
        return int(value)

    def time_ms(self, name: str, *, default: int) -> int:
        """Return the value of an option that is a time after 1970, in milliseconds."""
        value = self._values.get(name)
        if value is None:
            return default
        try:
            found = time_ms(value.strip())
        except ValueError as error:
            raise RefusedOptionError(name, str(error)) from None
        if found < 1:
            raise OptionError(name, value, "a time after 1970")
        return found

    def duration_ms(self, name: str, *, default: int) -> int:
        """Return the value of an option that is a duration in Spark's form, such as 15m, in
        milliseconds."""
        value = self._values.get(name)
        if value is None:
            return default
        # Spark's options take a number alone for milliseconds.
        length_ms = given_duration_ms(value + "ms" if value.strip().isdecimal() else value)
        if length_ms is None:
            raise OptionError(name, value, DURATIONS_ALLOWED)
        return length_ms

    def choice(self, name: str, *, default: _Choice) -> _Choice:
        """Return the value of an option that is one of a few words, in any case."""
        value = self._values.get(name)
        if value is None:
            return default
        words = {str(member.value).lower(): member for member in type(default)}
        if value.strip().lower() not in words:
            raise OptionError(name, value, [str(member.value) for member in type(default)])
        return words[value.strip().lower()]

    def listed(self, name: str) -> tuple[str, ...] | None:
        """Return the comma-separated words of an option, None if it is not given."""
        value = self._values.get(name)
        if value is None:
            return None
        words = tuple(word.strip() for word in value.split(",") if word.strip())
        if not words:
            raise OptionError(name, value, "words separated by commas")
        return words

    def paths(self, allowed: str) -> tuple[str, ...]:
        """Return the paths given to `load`, at least one; `allowed` describes what they can be."""
        path, paths = self.text("path"), self.text("paths")
        listed = ([path] if path else []) if paths is None else _path_list("paths", paths)
        if not listed:
            raise OptionError("path", path or None, allowed)
        return tuple(listed)

    def path_list(self, name: str) -> tuple[str, ...]:
        """Return the paths of an option that is one path or a JSON list of several, none if it is
        not given."""
        value = self.text(name)
        if value is None:
            return ()
        return tuple(_path_list(name, value)) if value.startswith("[") else (value,)


def _named(wanted: str, known: Sequence[str]) -> str:
    near = get_close_matches(wanted.lower(), [name.lower() for name in known], n=2)
    guess = [name for name in known if name.lower() in near]
    suggestion = f"did you mean {' or '.join(guess)}? There are " if guess else ""
    return f"an option: {suggestion}{', '.join(sorted(known, key=str.lower))}"


def _path_list(name: str, value: str) -> list[str]:
    try:
        listed = json.loads(value)
    except ValueError:
        listed = None
    if not isinstance(listed, list) or not all(isinstance(path, str) for path in listed):
        raise OptionError(name, value, 'JSON such as ["/data1","/data2"], as load() writes it')
    return listed
