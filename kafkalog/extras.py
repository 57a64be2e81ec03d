"""Libraries that an extra of the package brings, as in `pip install 'kafkalog[spark]'`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafkalog.errors import KafkaLogError

# Modules that the package imports, and the extras of pyproject.toml that bring them.
_EXTRAS = {
    "pyspark": "spark",
    "py4j": "spark",
    "delta": "spark",
    "deltalake": "deltalake",
    "pandas": "spark",
    "grpc": "connect",
    "pyiceberg": "iceberg",
    "sqlalchemy": "iceberg",
    "duckdb": "sql",
}


class MissingExtraError(KafkaLogError, ModuleNotFoundError):
    """A library that is not installed, and the extra that brings it."""

    def __init__(self, module: str) -> None:
        self.module = module
        KafkaLogError.__init__(
            self,
            f"this needs {module}, which is not installed: "
            f"pip install 'kafkalog[{_EXTRAS[module]}]'",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (MissingExtraError, (self.module,))


@contextmanager
def missing_extras_named() -> Iterator[None]:
    """Raise MissingExtraError where a block imports a library that an extra would bring."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in _EXTRAS or isinstance(error, MissingExtraError):
            raise
        raise MissingExtraError(module) from None
