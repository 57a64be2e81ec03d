"""Ports of loopback that a server of a test can listen on."""

from __future__ import annotations

import random
import socket
from itertools import islice

_HOST = "127.0.0.1"
# Below 32768, where Linux takes the ports of outgoing connections from
# (net.ipv4.ip_local_port_range): another process's connection would take one of those between
# this check and the start of the server.
_PORTS = range(10_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Return `count` different ports that are free now."""
    shuffled = random.sample(_PORTS, len(_PORTS))
    return list(islice((port for port in shuffled if _is_free(port)), count))


def _is_free(port: int) -> bool:
    try:
        socket.create_server((_HOST, port)).close()
    except OSError:
        return False
    return True
