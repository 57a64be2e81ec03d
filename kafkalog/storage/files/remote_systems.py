"""The file systems behind URIs.

pyarrow's own file systems for s3, gs, abfs and hdfs, fsspec's for every other scheme. Credentials
come from the environment, as each store's own tools take them, or from the settings of
`kafkalog.storage.files.file_access`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from pyarrow import fs

from kafkalog.errors import OptionError, UnsupportedFormatError
from kafkalog.format.secret_configs import HIDDEN
from kafkalog.storage.files.storage_settings import (
    FLAGS,
    NUMBERS,
    SETTINGS_OF,
    option_name,
    without_secrets,
)
from kafkalog.storage.files.uris import uri_parts

# Requests to a store that slows its clients down are repeated, after longer and longer waits.
_S3_ATTEMPTS = 8
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")


def file_system(uri: str, settings: Mapping[str, str]) -> tuple[Any, str]:
    """Return the pyarrow file system of a URI, and the file's path in it.

    Raises UnsupportedFormatError for a scheme that nothing here reads, OptionError for credentials
    in the URI and for a setting that its file system does not have.
    """
    scheme, authority, path = uri_parts(uri)
    credentials, _, host = authority.rpartition("@")
    if ":" in credentials:  # as a part of paths they would be printed, and be in tables
        allowed = "a URI without credentials: they come from the environment or storage.*"
        raise OptionError("path", f"{scheme}://{HIDDEN}@{host}", allowed)
    system, root = _opened(scheme, authority, tuple(sorted(settings.items())))
    return system, f"{root.rstrip('/')}/{path}" if path or not root else root


def is_connected() -> bool:
    """Return whether a file system has been opened."""
    return _opened.cache_info().currsize > 0


@lru_cache(maxsize=32)
def _opened(scheme: str, authority: str, given: tuple[tuple[str, str], ...]) -> tuple[Any, str]:
    if scheme not in _OPENERS:
        return _fsspec(scheme, authority, dict(given))
    return _OPENERS[scheme](authority, _arguments(given, SETTINGS_OF[scheme]))


def _arguments(
    given: tuple[tuple[str, str], ...], known: tuple[str, ...]
) -> dict[str, str | bool | float]:
    """Return settings as keyword arguments: `storage.accessKey` is `access_key`."""
    names = {name.replace("_", ""): name for name in known}
    arguments: dict[str, str | bool | float] = {}
    for key, value in given:
        name = names.get(key.replace("_", ""))
        if name is None:
            allowed = [option_name(each) for each in known]
            raise OptionError(f"storage.{key}", "a value", allowed)
        arguments[name] = _converted(name, value)
    return arguments


def _converted(name: str, value: str) -> str | bool | float:
    if name in FLAGS:
        return value.strip().lower() == "true"
    if name in NUMBERS:
        try:
            return float(value)
        except ValueError:
            raise OptionError(option_name(name), value, "a number of seconds") from None
    return value


def _s3(bucket: str, arguments: dict[str, Any]) -> tuple[Any, str]:
    # pyarrow does not look for these itself.
    for name in _ENDPOINT_VARIABLES:
        if os.environ.get(name):
            arguments.setdefault("endpoint_override", os.environ[name])
    has_region = any(os.environ.get(name) for name in _REGION_VARIABLES)
    if "region" not in arguments and "endpoint_override" not in arguments and not has_region:
        arguments["region"] = fs.resolve_s3_region(bucket)
    retries = fs.AwsStandardS3RetryStrategy(max_attempts=_S3_ATTEMPTS)
    return fs.S3FileSystem(retry_strategy=retries, **arguments), bucket


def _gs(bucket: str, arguments: dict[str, Any]) -> tuple[Any, str]:
    return fs.GcsFileSystem(**arguments), bucket


def _abfs(authority: str, arguments: dict[str, Any]) -> tuple[Any, str]:
    """`container@account.dfs.core.windows.net`, or the container with the account as a setting."""
    container, _, host = authority.partition("@")
    if host:
        arguments.setdefault("account_name", host.partition(".")[0])
    if "account_name" not in arguments:
        raise OptionError(
            "path", f"abfs://{authority}", "abfss://container@account.dfs.core.windows.net/path"
        )
    return fs.AzureFileSystem(**arguments), container


def _hdfs(authority: str, arguments: dict[str, Any]) -> tuple[Any, str]:
    host, _, port = authority.partition(":")
    # Without a port the authority is a name service of hdfs-site.xml.
    return fs.HadoopFileSystem(host or "default", int(port) if port else 0, **arguments), "/"


_OPENERS: dict[str, Callable[[str, dict[str, Any]], tuple[Any, str]]] = {
    "s3": _s3,
    "gs": _gs,
    "abfs": _abfs,
    "abfss": _abfs,
    "hdfs": _hdfs,
}


def _fsspec(scheme: str, authority: str, settings: dict[str, str]) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise UnsupportedFormatError(
            f"{scheme}://{authority} cannot be read: s3, gs, abfs, abfss and hdfs are read as they "
            "are, every other scheme by fsspec (pip install 'kafkalog[fsspec]')"
        ) from None
    try:
        system = fsspec.filesystem(scheme, **settings)
    except (ImportError, ValueError) as error:
        reason = without_secrets(str(error), settings)
        raise UnsupportedFormatError(f"{scheme}://{authority} cannot be read: {reason}") from None
    root = system._strip_protocol(f"{scheme}://{authority}/")
    return fs.PyFileSystem(fs.FSSpecHandler(system)), str(root)
