"""The users of a server, and the checks of their passwords.

Nothing here shows whether a user exists: an unknown one is checked like one whose password is
random. Passwords are compared in constant time.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping

from kafkalog.errors import OptionError
from kafkalog.format.side_files.properties import read_properties
from kafkalog.server.security.scram import MECHANISMS, ScramCredential, scram_credential
from kafkalog.server.security.secret_files import read_secret_file

_FORM = "a file with a line NAME=PASSWORD for each user"
# Kafka's clients take no fewer than 4096.
_ITERATIONS = 8192


class Users:
    """Names and passwords. A restart changes all salts."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._key = secrets.token_bytes(32)
        self._passwords = {name: self._hashed(text.encode()) for name, text in passwords.items()}
        self._credentials = {
            (mechanism, name): scram_credential(
                mechanism, text.encode(), self._salt(mechanism, name), _ITERATIONS
            )
            for mechanism in MECHANISMS
            for name, text in passwords.items()
        }

    def has_password(self, name: str, password: bytes) -> bool:
        """Return whether a user has this password."""
        expected = self._passwords.get(name) or secrets.token_bytes(32)
        return hmac.compare_digest(self._hashed(password), expected)

    def credential(self, mechanism: str, name: str) -> ScramCredential:
        """Return what SCRAM needs of a user; of an unknown one, what fits no password, with the
        same salt each time."""
        found = self._credentials.get((mechanism, name))
        if found is not None:
            return found
        salt = self._salt(mechanism, name)
        size = MECHANISMS[mechanism].digest_size
        stored_key, server_key = secrets.token_bytes(size), secrets.token_bytes(size)
        return ScramCredential(salt, _ITERATIONS, stored_key, server_key)

    def _hashed(self, password: bytes) -> bytes:
        return hmac.digest(self._key, password, "sha256")

    def _salt(self, mechanism: str, name: str) -> bytes:
        text = f"{mechanism}\0{name}".encode("utf-8", errors="surrogatepass")
        return hmac.digest(self._key, text, "sha256")


def read_users(option: str, path: str) -> Users:
    """Return the users that a file names, in the form of a properties file. Raises OptionError."""
    content = read_secret_file(option, path)
    try:
        passwords = read_properties(content.decode("utf-8")).values
    except UnicodeDecodeError:
        raise OptionError(option, path, f"{_FORM}, in UTF-8") from None
    return users_of(option, path, passwords)


def users_of(option: str, given: str, passwords: Mapping[str, str]) -> Users:
    """Return users by their names and passwords; `given` is what an error calls them. Raises
    OptionError for none and for those without a password."""
    empty = sorted(name for name, password in passwords.items() if not password)
    if empty:
        raise OptionError(option, given, f"{_FORM}; {empty[0]!r} has no password")
    if not passwords:
        raise OptionError(option, given, f"{_FORM}; there is none")
    return Users(passwords)
