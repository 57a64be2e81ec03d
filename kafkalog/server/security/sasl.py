"""SASL on one connection: which mechanism a client takes, and whether it is who it says."""

from __future__ import annotations

from kafkalog.messages.schema import Values
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import Request
from kafkalog.server.security.scram import MECHANISMS, AuthenticationError, ScramExchange
from kafkalog.server.security.users import Users

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
_PLAIN = "PLAIN"
_ALL = [_PLAIN, *MECHANISMS]
# What a client learns of a failure, the same of all.
_FAILED = "Authentication failed: wrong user name or password"


class SaslSession:
    """The authentication of one client. `failure` says why it has failed, for the server's log.

    After a handshake of version 0 `is_bare` is true: the tokens come without a request around them.
    """

    def __init__(self, users: Users) -> None:
        self._users = users
        self._mechanism: str | None = None
        self._exchange: ScramExchange | None = None
        self.is_authenticated = False
        self.is_bare = False
        self.failure: str | None = None

    def handshake(self, request: Request) -> Values:
        """Answer SaslHandshake."""
        mechanism = request.values["mechanism"]
        error = ErrorCode.NONE
        if self._mechanism is not None:
            error = ErrorCode.ILLEGAL_SASL_STATE
        elif mechanism not in _ALL:
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        if error is not ErrorCode.NONE:
            self.failure = f"SaslHandshake: {error.name}"
            return {"errorCode": error, "mechanisms": _ALL}
        self._mechanism = mechanism
        self.is_bare = request.version == 0
        if mechanism in MECHANISMS:
            self._exchange = ScramExchange(
                mechanism, lambda name: self._users.credential(mechanism, name)
            )
        return {"errorCode": error, "mechanisms": _ALL}

    def authenticate(self, request: Request) -> Values:
        """Answer SaslAuthenticate."""
        if self._mechanism is None:
            self.failure = "SaslAuthenticate before SaslHandshake"
            return _refused(ErrorCode.ILLEGAL_SASL_STATE, self.failure)
        answer = self.answer(request.values["authBytes"])
        if self.failure is not None:
            return _refused(ErrorCode.SASL_AUTHENTICATION_FAILED, _FAILED)
        return {"errorCode": ErrorCode.NONE, "errorMessage": None, "authBytes": answer}

    def answer(self, token: bytes) -> bytes:
        """Return the answer to a mechanism's token, nothing after a failure."""
        try:
            if self._exchange is None:
                self._check_plain(token)
                self.is_authenticated = True
                return b""
            answer = self._exchange.answer(token)
            self.is_authenticated = self._exchange.is_complete
            return answer
        except AuthenticationError as error:
            self.failure = f"{self._mechanism}: {error}"
            return b""

    def _check_plain(self, token: bytes) -> None:
        """Check a token of PLAIN (RFC 4616). Raises AuthenticationError."""
        parts = token.split(b"\0")
        if len(parts) != 3:
            raise AuthenticationError("the message is malformed")
        other, name, password = parts
        if other not in (b"", name):
            raise AuthenticationError("a user cannot act for another one")
        # A name that is not UTF-8 is that of no user.
        if not self._users.has_password(name.decode("utf-8", errors="replace"), password):
            raise AuthenticationError("wrong user name or password")


def _refused(error: ErrorCode, message: str) -> Values:
    return {"errorCode": error, "errorMessage": message, "authBytes": b""}
