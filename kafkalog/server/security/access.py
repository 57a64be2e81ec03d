"""How clients connect: with TLS or without, as users or as anyone."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kafkalog.errors import OptionError
from kafkalog.server.security.secret_files import read_secret_file
from kafkalog.server.security.users import Users, read_users, users_of
from kafkalog.storage.files.regular_files import open_regular


@dataclass(frozen=True, slots=True)
class Access:
    """The settings of TLS, and the users; without them anyone connects in plain text."""

    tls: ssl.SSLContext | None = None
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
        tls = _tls_context(names.certificate, names.key, certificate, key)
    elif certificate is not None:
        raise OptionError(names.key, None, f"a file, since {names.certificate} is given")
    elif key is not None:
        raise OptionError(names.certificate, None, f"a file, since {names.key} is given")
    if users is None or isinstance(users, str):
        return Access(tls, None if users is None else read_users(names.users, users))
    return Access(tls, users_of(names.users, "the mapping", users))


def _tls_context(
    certificate_option: str, key_option: str, certificate: str, key: str
) -> ssl.SSLContext:
    """Return the settings of TLS 1.2 and later. Raises OptionError, with the option's name, for
    files that do not fit each other, and for a key that others can read."""
    read_secret_file(key_option, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        os.close(open_regular(certificate))
        # Without a password OpenSSL would ask the terminal for that of an encrypted key.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        form = "a private key in PEM form, not encrypted, and a certificate that it fits"
        raise OptionError(key_option, key, f"{form}: {error.reason or error}") from None
    except OSError as error:
        reason = f"a certificate in PEM form: {error.strerror}"
        raise OptionError(certificate_option, certificate, reason) from None
    return context
