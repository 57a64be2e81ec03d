"""What `spark-submit` is given for a job: the project's settings, with the jars for its Spark."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kafkalog.resources import resource
from kafkalog.spark_versions import SparkVersion, settings_for, submitted_version

_FORMAT = "--format"
# The job that writes a page.
_WITHOUT_TABLES = "report"
_DECODED = ("--key-format", "--value-format")
# Of the driver's JVM, before those that a user gives.
_DRIVER_OPTIONS = "spark.driver.defaultJavaOptions"
# The Spark that `kafkalog[spark]` brings, where none is found.
_USUAL = SparkVersion.of("4.2.0")


def submit_arguments(name: str, arguments: Sequence[str]) -> list[str]:
    """Return the arguments of spark-submit for a job with its own arguments: Delta's jar for Delta
    tables, Avro's for Avro. Says on stderr where the Spark here is newer than all that were tried.
    Raises OptionError where no Delta takes it."""
    spark = submitted_version() or _USUAL
    if spark.is_unknown:
        click.echo(f"warning: {spark.warning}", err=True)
    wants_delta = name != _WITHOUT_TABLES and _value(arguments, _FORMAT) in (None, "delta")
    if wants_delta:
        spark.refuse_delta()
    avro = any((_value(arguments, name) or "").endswith("avro") for name in _DECODED)
    settings = settings_for(spark, with_delta=wants_delta, with_avro=avro)
    if wants_delta:
        given = ["--properties-file", str(resource("conf", "spark-defaults.conf"))]
        usual = settings_for(_USUAL, with_delta=True)
        settings = {key: value for key, value in settings.items() if usual[key] != value}
    else:
        given = []
    # Without it Spark writes what it does, hundreds of lines.
    logging = f"-Dlog4j2.configurationFile={resource('conf', 'log4j2.properties')}"
    settings[_DRIVER_OPTIONS] = logging
    return [*given, *(part for pair in settings.items() for part in ("--conf", "=".join(pair)))]


def _value(arguments: Sequence[str], name: str) -> str | None:
    """Return the value of an option, as `--name VALUE` or `--name=VALUE`; None without it."""
    for place, argument in enumerate(arguments):
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
        if argument == name:
            return arguments[place + 1] if place + 1 < len(arguments) else None
    return None
