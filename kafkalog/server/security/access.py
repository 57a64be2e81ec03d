"""How clients connect: with TLS or without, as users or as anyone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ssl import SSLContext
from typing import NamedTuple

from kafkalog.errors import OptionError
from kafkalog.server.security.tls import tls_context
from kafkalog.server.security.users import Users, read_users, users_of


@dataclass(frozen=True, slots=True)
class Access:
    """The settings of TLS, and the users; without them anyone connects in plain text."""

    tls: SSLContext | None = None
    users: Users | None = None

    @property
    def is_open(self) -> bool:
        """Whether anyone connects, in plain text."""
        return self.tls is None and self.users is None

    @property
    def is_protected(self) -> bool:
        """Whether connections are encrypted and clients authenticated."""
        return self.tls is not None and self.users is not None


OPEN = Access()


class OptionNames(NamedTuple):
    """How the caller knows the options."""

    certificate: str
    key: str
    users: str


def access_of(
    certificate: str | None,
    key: str | None,
    users: str | Mapping[str, str] | None,
    names: OptionNames,
) -> Access:
    """Return what the options mean. Raises OptionError, with the options' names."""
    tls = None
    if certificate is not None and key is not None:
        tls = tls_context(names.certificate, names.key, certificate, key)
    elif certificate is not None:
        raise OptionError(names.key, None, f"a file, since {names.certificate} is given")
    elif key is not None:
        raise OptionError(names.certificate, None, f"a file, since {names.key} is given")
    if users is None or isinstance(users, str):
        return Access(tls, None if users is None else read_users(names.users, users))
    return Access(tls, users_of(names.users, "the mapping", users))
