"""Certificates for servers on loopback, by the command openssl."""

import subprocess
from pathlib import Path


def self_signed(directory: Path) -> tuple[str, str]:
    """The files of a certificate for localhost, and of its key."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    command = [
        *("openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt"),
        *("ec_paramgen_curve:P-256", "-days", "2", "-subj", "/CN=localhost"),
        *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        *("-keyout", str(key), "-out", str(certificate)),
    ]
    subprocess.run(command, check=True, capture_output=True)
    certificate.chmod(0o644)
    key.chmod(0o600)
    return str(certificate), str(key)


def encrypt_key(key: str, encrypted: Path) -> None:
    """Write a key that asks for a password."""
    command = ["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:locked"]
    subprocess.run([*command, "-out", str(encrypted)], check=True, capture_output=True)
    encrypted.chmod(0o600)
