"""Libraries that an extra of the package brings, as in `pip install 'kafkalog[spark]'`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafkalog.errors import KafkaLogError

# Modules that the package imports, and what pip installs for them: extras of pyproject.toml. Frames
# of pandas and polars are for those who have the libraries; Spark wants pandas below 3.
_BROUGHT_BY = {
    "pyspark": "kafkalog[spark]",
    "py4j": "kafkalog[spark]",
    "delta": "kafkalog[spark]",
    "deltalake": "kafkalog[deltalake]",
    "pandas": "pandas<3",
    "polars": "polars",
    "grpc": "kafkalog[connect]",
    "pyiceberg": "kafkalog[iceberg]",
    "sqlalchemy": "kafkalog[iceberg]",
    "duckdb": "kafkalog[sql]",
    "google": "kafkalog[protobuf]",
}


# Libraries by the modules that have another name.
_CALLED = {"google": "protobuf"}


class MissingExtraError(KafkaLogError, ModuleNotFoundError):
    """A library that is not installed, and what brings it."""

    def __init__(self, module: str) -> None:
        self.module = module
        name, brought_by = _CALLED.get(module, module), _BROUGHT_BY[module]
        said = f"this needs {name}, which is not installed: pip install '{brought_by}'"
        KafkaLogError.__init__(self, said)

    def __reduce__(self) -> tuple[object, ...]:
        return (MissingExtraError, (self.module,))


@contextmanager
def missing_extras_named() -> Iterator[None]:
    """Raise MissingExtraError where a block imports a library that an extra would bring."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in _BROUGHT_BY or isinstance(error, MissingExtraError):
            raise
        raise MissingExtraError(module) from None
