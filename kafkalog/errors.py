"""The errors kafkalog raises. Everything it raises on purpose derives from KafkaLogError."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from kafkalog.words import name_suggestions, similar_names

_Name = TypeVar("_Name", str, int)


class KafkaLogError(Exception):
    """Base of all errors raised by kafkalog."""


class FileCutError(KafkaLogError):
    """A file that became shorter while it was read."""


class OutOfMemoryError(KafkaLogError):
    """Reading needs more memory than the process may have; `path` is the file that was being read,
    None if it is not known."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        super().__init__(
            f"{path or 'reading'} needs more memory than there is: raise the limit (ulimit -v, the "
            "container's, spark.executor.pyspark.memory), read fewer files at a time, or leave the "
            "file out"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (OutOfMemoryError, (self.path,))


class CorruptDataError(KafkaLogError):
    """Bytes that are not what Kafka writes.

    `position` is the byte place of the damaged batch: in the file when `path` is set, in the
    buffer otherwise. The layer that opened the file adds the path with `located`.
    """

    def __init__(
        self,
        fault: str,
        detail: str,
        *,
        position: int,
        path: str | None = None,
        base_offset: int | None = None,
        advice: str | None = None,
    ) -> None:
        self.fault = fault
        self.detail = detail
        self.position = position
        self.path = path
        self.base_offset = base_offset
        self.advice = advice
        place = f"{path}: position {position}" if path else f"position {position}"
        if base_offset is not None:
            place += f", base offset {base_offset}"
        message = f"{place}: {fault}: {detail}"
        super().__init__(f"{message} ({advice})" if advice else message)

    def located(self, path: str, position: int, base_offset: int | None) -> CorruptDataError:
        """Return the same error with the file, the batch's place in it and its base offset."""
        return CorruptDataError(
            self.fault,
            self.detail,
            position=position,
            path=path,
            base_offset=base_offset,
            advice=self.advice,
        )

    def __reduce__(self) -> tuple[object, ...]:
        # Spark pickles errors across processes; keyword arguments need this.
        place = self.position, self.path, self.base_offset, self.advice
        return (_corrupt_data_error, (self.fault, self.detail, *place))


def _corrupt_data_error(
    fault: str,
    detail: str,
    position: int,
    path: str | None,
    base_offset: int | None,
    advice: str | None,
) -> CorruptDataError:
    return CorruptDataError(
        fault, detail, position=position, path=path, base_offset=base_offset, advice=advice
    )


class UnsupportedFormatError(KafkaLogError):
    """Something kafkalog recognises but does not read."""


class SchemaError(KafkaLogError):
    """A schema that the tables or messages of kafkalog do not allow."""


class OptionError(KafkaLogError):
    """An option that is unknown, contradictory, or has a value that is not allowed. `name` can be
    the names of several; `mentioned` are the options that `allowed` names."""

    def __init__(
        self,
        name: str | tuple[str, ...],
        value: object,
        allowed: str | Sequence[str],
        mentioned: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.value = value
        self.allowed = allowed
        self.mentioned = mentioned
        super().__init__(self.told(str))

    def told(self, given: Callable[[str], str]) -> str:
        """Return what is said, with the names that `given` returns for those of the options."""
        words = self.allowed
        if not isinstance(words, str):
            near = similar_names(str(self.value), words)
            guess = f"; did you mean {' or '.join(near)}?" if near else ""
            words = f"one of {', '.join(words)}{guess}"
        for name in self.mentioned:
            words = words.replace(name, given(name))
        names = (self.name,) if isinstance(self.name, str) else self.name
        return self._sentence(" and ".join(map(given, names)), words, given)

    def _sentence(self, names: str, words: str, given: Callable[[str], str]) -> str:
        found = "missing" if self.value is None else f"{self.value!r} is not valid"
        return f"{names}: {found}, expected {words}"

    def __reduce__(self) -> tuple[object, ...]:
        return (OptionError, (self.name, self.value, self.allowed, self.mentioned))


def refuse_unknown(
    option: str,
    named: Collection[_Name],
    present: Collection[_Name | None],
    held: str = "what the log directories hold",
    hint: str = "",
) -> None:
    """Raise OptionError for names that are not present, with those that are like them: what is
    misspelt would be looked for in vain, and nothing found of it. `held` says what is
    present, and `hint` where else to look."""
    unknown = [str(each) for each in dict.fromkeys(named) if each not in present]
    if unknown:
        known = [str(each) for each in present if each is not None]
        shown = name_suggestions(unknown, known) if known else "nothing"
        raise OptionError(option, ",".join(unknown), f"{held}: {shown}{hint}")


class ConflictingOptionsError(OptionError):
    """Two options that cannot be used together."""

    def __init__(self, name: str, other: str) -> None:
        super().__init__(name, other, "one of the two")

    def _sentence(self, names: str, words: str, given: Callable[[str], str]) -> str:
        return f"{names} cannot be used with {given(str(self.value))}"

    def __reduce__(self) -> tuple[object, ...]:
        return (ConflictingOptionsError, (self.name, self.value))


class RepeatedOptionError(OptionError):
    """An option that takes one value and is given twice."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "two values", "one")

    def _sentence(self, names: str, words: str, given: Callable[[str], str]) -> str:
        return f"{names} is given twice"

    def __reduce__(self) -> tuple[object, ...]:
        return (RepeatedOptionError, (self.name,))


class RefusedOptionError(OptionError):
    """An option that cannot be used with this input or beside what else is given; `reason` says
    why, and what to do."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, None, reason)

    def _sentence(self, names: str, words: str, given: Callable[[str], str]) -> str:
        return f"{names}: {words}"

    def __reduce__(self) -> tuple[object, ...]:
        return (RefusedOptionError, (self.name, self.allowed))


class UnknownArgumentError(RefusedOptionError, TypeError):
    """A keyword argument that a Python function does not have; `hint` says which it has."""

    def __init__(self, name: str, hint: str) -> None:
        self.hint = hint
        super().__init__(name, f"there is no such argument: {hint}")

    def __reduce__(self) -> tuple[object, ...]:
        return (UnknownArgumentError, (self.name, self.hint))


def refuse_unknown_arguments(given: Iterable[str], known: Collection[str]) -> None:
    """Raise UnknownArgumentError for a keyword argument that is not known, with those that are like
    it."""
    for name in given:
        if name not in known:
            raise UnknownArgumentError(name, name_suggestions([name], sorted(known)))


class RowError(KafkaLogError):
    """Rows that cannot be written as records, or not in the order that they came in."""


class LogDirError(KafkaLogError):
    """A path that is not a log directory, or directories that contradict each other."""


class RemoteFileError(KafkaLogError):
    """A remote file or directory that could not be read: `doing` is the operation, `reason` the
    file system's message. A task that ends with it can be tried again."""

    def __init__(self, path: str, doing: str, reason: str) -> None:
        self.path = path
        self.doing = doing
        self.reason = reason
        super().__init__(
            f"{path}: {doing} failed: {reason} (reading again is safe; credentials and endpoint "
            "come from the environment or the options storage.*)"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (RemoteFileError, (self.path, self.doing, self.reason))


class DataLossError(KafkaLogError):
    """Requested records that the log does not hold (any more)."""


class OffsetOutOfRangeError(DataLossError):
    """An offset that a log does not hold; offsets from `start` to `end` are valid."""

    def __init__(self, log: str, offset: int, start: int, end: int) -> None:
        self.log = log
        self.offset = offset
        self.start = start
        self.end = end
        super().__init__(
            f"offset {offset} of {log} is not in the log, which holds {start} to {end}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (OffsetOutOfRangeError, (self.log, self.offset, self.start, self.end))


class StatePositionError(KafkaLogError):
    """A table of state that cannot continue with the given logs."""
