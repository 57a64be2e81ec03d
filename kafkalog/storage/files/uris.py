"""Paths as users give them: local ones, and URIs of files elsewhere.

A path is a string everywhere: a local path, or `scheme://authority/path`, which `posixpath` and
`os.path` join and split like any other. A URI is used unchanged: nothing is percent-decoded,
because neither Hadoop nor object stores do it.
"""

from __future__ import annotations

import os
import re

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<rest>.*)", re.DOTALL)
_FILE = re.compile(r"file:(//(localhost)?)?(?=/)", re.IGNORECASE)
# Hadoop's names for the same stores.
_SAME_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}


def is_remote(path: str) -> bool:
    """Return whether a path is a URI that the operating system cannot open."""
    return _URI.match(path) is not None and _FILE.match(path) is None


def absolute_path(path: str) -> str:
    """Return an absolute local path; a URI with the scheme's name here, without a slash at its
    end."""
    match = _URI.fullmatch(path)
    if match is None or _FILE.match(path):
        return os.path.abspath(_FILE.sub("", path, count=1))
    scheme = match["scheme"].lower()
    return f"{_SAME_SCHEMES.get(scheme, scheme)}://{match['rest'].rstrip('/')}"


def uri_parts(uri: str) -> tuple[str, str, str]:
    """Scheme, authority and path of a URI; the path without slashes at its ends."""
    scheme, _, rest = uri.partition("://")
    authority, _, path = rest.partition("/")
    return scheme, authority, path.strip("/")


def is_inside(path: str, directory: str) -> bool:
    """Return whether a path is a directory or is below it, with links resolved."""
    if is_remote(path) or is_remote(directory):
        target, place = absolute_path(path), absolute_path(directory)
        return target == place or target.startswith(f"{place}/")
    target, place = (os.path.realpath(absolute_path(each)) for each in (path, directory))
    return os.path.commonpath([target, place]) == place
