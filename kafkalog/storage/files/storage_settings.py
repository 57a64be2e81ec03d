"""The options `storage.*`: the names that pyarrow has for the settings of its file systems, written
as options are. Which of them are secrets decides what may be printed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, quote_plus

from kafkalog.format.secret_configs import HIDDEN

PREFIX = "storage."
# By scheme, the keyword arguments of pyarrow's file system that are worth an option.
SETTINGS_OF = {
    "s3": (
        "access_key",
        "secret_key",
        "session_token",
        "anonymous",
        "region",
        "endpoint_override",
        "scheme",
        "force_virtual_addressing",
        "role_arn",
        "session_name",
        "external_id",
        "proxy_options",
        "request_timeout",
        "connect_timeout",
        "tls_ca_file_path",
    ),
    "gs": (
        "anonymous",
        "access_token",
        "target_service_account",
        "scheme",
        "endpoint_override",
        "project_id",
    ),
    "abfs": (
        "account_name",
        "account_key",
        "sas_token",
        "tenant_id",
        "client_id",
        "client_secret",
        "blob_storage_authority",
        "blob_storage_scheme",
        "dfs_storage_authority",
        "dfs_storage_scheme",
    ),
    "hdfs": ("user", "kerb_ticket"),
}
SETTINGS_OF["abfss"] = SETTINGS_OF["abfs"]
FLAGS = frozenset(("anonymous", "force_virtual_addressing"))
NUMBERS = frozenset(("request_timeout", "connect_timeout"))
# Settings that may be printed: all others may be secrets, also those of fsspec.
_PLAIN = frozenset(
    name.replace("_", "")
    for name in (
        *FLAGS,
        *NUMBERS,
        "region",
        "endpoint_override",
        "scheme",
        "account_name",
        "project_id",
        "user",
    )
)


_CREDENTIALS = re.compile(r"(://)[^/@\s]*:[^/@\s]*@")


def option_name(setting: str) -> str:
    """Return the option for a keyword argument: `storage.accessKey` for `access_key`."""
    return PREFIX + re.sub(r"_(.)", lambda match: match[1].upper(), setting)


def without_secrets(text: str, settings: Mapping[str, str]) -> str:
    """Return a text without the values of settings that may be secrets, written plainly or as
    part of a URI."""
    for name, value in settings.items():
        if value and name.replace("_", "") not in _PLAIN:
            for written in (value, quote(value, safe=""), quote(value), quote_plus(value)):
                text = text.replace(written, HIDDEN)
    return _CREDENTIALS.sub(rf"\1{HIDDEN}@", text)
