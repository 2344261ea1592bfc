"""Which server holds which range of the flat parameters."""

from __future__ import annotations


def cut(size: int, servers: int) -> list[tuple[int, int]]:
    """Ranges as even as whole floats allow, across tensor borders: (start, stop) a server."""
    return [(size * s // servers, size * (s + 1) // servers) for s in range(servers)]
