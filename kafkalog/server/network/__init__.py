"""Sockets, limits and metrics; a server from its start to its end."""
