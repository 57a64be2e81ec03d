"""Ed25519 signatures of proofs, made and checked by the program openssl, which every auditor has.

Rule: docs/erasure.md F1120 (docs/decisions/0065).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

from kafkalog.errors import KafkaLogError, OptionError

SIGNATURE = ".sig"
_SECONDS = 60


def public_key_of(option: str, key_file: str) -> str:
    """Return the public key, as PEM, of a private key in a file. Raises OptionError for one that
    openssl does not read, or that is not Ed25519."""
    shown = _openssl("pkey", "-in", key_file, "-noout", "-text", "-passin", "pass:")
    if shown.returncode or b"ED25519" not in shown.stdout.upper():
        allowed = "a private Ed25519 key as PEM, made by: openssl genpkey -algorithm ed25519"
        raise OptionError(option, key_file, allowed)
    return _openssl("pkey", "-in", key_file, "-pubout", "-passin", "pass:").stdout.decode()


def signed(key_file: str, data: bytes) -> bytes:
    """Return the signature of bytes. Raises KafkaLogError if openssl fails."""
    with tempfile.TemporaryDirectory() as folder:
        given = _written(folder, "data", data)
        made = os.path.join(folder, "signature")
        arguments = ("-inkey", key_file, "-passin", "pass:", "-rawin", "-in", given, "-out", made)
        done = _openssl("pkeyutl", "-sign", *arguments)
        if done.returncode:
            raise KafkaLogError(f"openssl did not sign: {done.stderr.decode(errors='replace')}")
        with open(made, "rb") as file:
            return file.read()


def is_signed(public_key: str, data: bytes, signature: bytes) -> bool:
    """Return whether a signature of bytes is that of a public key."""
    with tempfile.TemporaryDirectory() as folder:
        key = _written(folder, "key.pem", public_key.encode())
        given = _written(folder, "data", data)
        made = _written(folder, "signature", signature)
        arguments = ("-pubin", "-inkey", key, "-rawin", "-in", given, "-sigfile", made)
        return _openssl("pkeyutl", "-verify", *arguments).returncode == 0


def _written(folder: str, name: str, data: bytes) -> str:
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def _openssl(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("openssl")
    if program is None:
        raise KafkaLogError("signatures need the program openssl (apt install openssl)")
    return subprocess.run(
        [program, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS,
        check=False,
    )  # fmt: skip
