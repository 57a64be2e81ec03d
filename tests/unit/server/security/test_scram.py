"""SCRAM against the exchanges that its RFCs print."""

import base64

import pytest

from kafkalog.server.security.scram import (
    AuthenticationError,
    ScramCredential,
    ScramExchange,
    scram_credential,
)

# RFC 7677, section 3.
CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
FIRST = f"n,,n=user,r={CLIENT_NONCE}".encode()
NONCE = CLIENT_NONCE + SERVER_NONCE
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
FINAL = f"c=biws,r={NONCE},p={PROOF}".encode()


def exchange(password: bytes = b"pencil", names: list[str] | None = None) -> ScramExchange:
    def credential(name: str) -> ScramCredential:
        if names is not None:
            names.append(name)
        return scram_credential("SCRAM-SHA-256", password, SALT, 4096)

    return ScramExchange("SCRAM-SHA-256", credential, lambda: SERVER_NONCE)


def test_the_exchange_of_the_rfc() -> None:
    names: list[str] = []
    server = exchange(names=names)
    assert server.answer(FIRST) == f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    assert server.answer(FINAL) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert server.is_complete
    assert names == ["user"]


def test_another_password_is_refused() -> None:
    server = exchange(b"pencil ")
    server.answer(FIRST)
    with pytest.raises(AuthenticationError, match="wrong user name or password"):
        server.answer(FINAL)
    assert not server.is_complete


def test_names_may_have_commas_and_equals_signs() -> None:
    names: list[str] = []
    exchange(names=names).answer(b"n,a=a=2Cb=3Dc,n=a=2Cb=3Dc,r=x,extension=1")
    assert names == ["a,b=c"]


@pytest.mark.parametrize(
    "message",
    [
        *(b"", b"n,,", b"n,,n=,r=x", b"n,,n=user,r=", b"n,,n=us=er,r=x", b"n,,n=user"),
        *(b"p=tls-unique,,n=user,r=x", b"n,,m=ext,n=user,r=x", b"n,a=admin,n=user,r=x", b"\xff"),
    ],
)
def test_other_first_messages_are_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationError):
        exchange().answer(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        f"c=biws,r={NONCE}".encode(),
        f"c=biws,r={CLIENT_NONCE},p={PROOF}".encode(),
        f"c=eSws,r={NONCE},p={PROOF}".encode(),
        f"c=biws,r={NONCE},p=".encode(),
        f"c=biws,r={NONCE},p=AAAA".encode(),
        f"c=biws,r={NONCE},p={'A' * 43}".encode(),
        f"c=biws,r={NONCE},p={PROOF},p={PROOF}".encode(),
        b"\xff",
    ],
)
def test_other_last_messages_are_refused(message: bytes) -> None:
    server = exchange()
    server.answer(FIRST)
    with pytest.raises(AuthenticationError):
        server.answer(message)
    assert not server.is_complete


def test_a_password_is_in_no_text() -> None:
    found = scram_credential("SCRAM-SHA-512", b"pencil", SALT, 4096)
    assert "key" not in repr(found)
