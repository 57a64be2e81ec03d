"""SCRAM, the server's side (RFC 5802, RFC 7677): a client proves that it knows a password, without
sending it. As in Kafka, names and passwords are UTF-8 as it is, and nothing is bound to TLS."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkalog.errors import KafkaLogError


class _Hash(NamedTuple):
    name: str
    digest_size: int


MECHANISMS: Mapping[str, _Hash] = {
    "SCRAM-SHA-256": _Hash("sha256", 32),
    "SCRAM-SHA-512": _Hash("sha512", 64),
}
# A name has no comma and no equals sign but those of =2C and =3D.
_FIRST = re.compile(
    r"(?P<header>[ny],(?:a=(?P<other>(?:[^,=]|=2C|=3D)+))?,)"
    r"(?P<bare>n=(?P<name>(?:[^,=]|=2C|=3D)+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?:,.*)?)",
    re.DOTALL,
)
_FINAL = re.compile(
    r"(?P<unproved>c=(?P<header>[A-Za-z0-9+/=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?:,.*)?)"
    r",p=(?P<proof>[A-Za-z0-9+/=]+)",
    re.DOTALL,
)


class AuthenticationError(KafkaLogError):
    """A client that does not say who it is, or that it is not."""


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a server keeps of a password."""

    salt: bytes
    iterations: int
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)


def scram_credential(
    mechanism: str, password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Return what a server keeps of a password."""
    name = MECHANISMS[mechanism].name
    salted = hashlib.pbkdf2_hmac(name, password, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", name)
    server_key = hmac.digest(salted, b"Server Key", name)
    return ScramCredential(salt, iterations, hashlib.new(name, client_key).digest(), server_key)


class ScramExchange:
    """The two steps of one client."""

    def __init__(
        self,
        mechanism: str,
        credential_of: Callable[[str], ScramCredential],
        new_nonce: Callable[[], str] = secrets.token_urlsafe,
    ) -> None:
        self._hash = MECHANISMS[mechanism].name
        self._credential_of = credential_of
        self._new_nonce = new_nonce
        self._nonce = ""
        self._header = b""
        self._messages = ""
        self._credential: ScramCredential | None = None
        self.is_complete = False

    def answer(self, token: bytes) -> bytes:
        """Return the answer to the client's next message. Raises AuthenticationError."""
        try:
            text = token.decode("utf-8")
        except UnicodeDecodeError:
            raise AuthenticationError("a message that is not UTF-8") from None
        if self._credential is None:
            return self._first(text).encode("utf-8")
        return self._final(text, self._credential)

    def _first(self, text: str) -> str:
        found = _FIRST.fullmatch(text)
        if found is None:
            raise AuthenticationError("the first message is malformed")
        if found["other"] not in (None, found["name"]):
            raise AuthenticationError("a user cannot act for another one")
        name = found["name"].replace("=2C", ",").replace("=3D", "=")
        self._credential = self._credential_of(name)
        self._nonce = found["nonce"] + self._new_nonce()
        self._header = found["header"].encode("utf-8")
        salt = base64.b64encode(self._credential.salt).decode("ascii")
        answer = f"r={self._nonce},s={salt},i={self._credential.iterations}"
        self._messages = f"{found['bare']},{answer}"
        return answer

    def _final(self, text: str, credential: ScramCredential) -> bytes:
        found = _FINAL.fullmatch(text)
        if found is None:
            raise AuthenticationError("the last message is malformed")
        if found["nonce"] != self._nonce or _decoded(found["header"]) != self._header:
            raise AuthenticationError("the last message belongs to another exchange")
        messages = f"{self._messages},{found['unproved']}".encode()
        signature = hmac.digest(credential.stored_key, messages, self._hash)
        proof = _decoded(found["proof"])
        if len(proof) != len(signature):
            raise AuthenticationError("the proof has a wrong length")
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._hash, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise AuthenticationError("wrong user name or password")
        self.is_complete = True
        return b"v=" + base64.b64encode(hmac.digest(credential.server_key, messages, self._hash))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise AuthenticationError("a value that is not base64") from None
