"""TLS of a server, by a certificate and its key in PEM form."""

from __future__ import annotations

import os
import ssl

from kafkalog.errors import OptionError
from kafkalog.server.security.secret_files import read_secret_file
from kafkalog.storage.files.regular_files import open_regular


def tls_context(
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
