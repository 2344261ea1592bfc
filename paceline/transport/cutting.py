"""Connections that a library opened in this process, found so that they can be cut.

gloo waits for a peer that says nothing until its patience is over, and nothing of its own ends
that sooner. A connection that is shut down is one that the peer has closed, as far as it can tell.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Iterable
from pathlib import Path

Opened = tuple[int, int]  # a descriptor, and the inode that tells whether it is still the same


def sockets() -> frozenset[Opened]:
    """All that this process has open now."""
    found = set()
    for entry in Path("/dev/fd").iterdir():
        with contextlib.suppress(OSError):  # closed since it was listed
            status = os.fstat(int(entry.name))
            if stat.S_ISSOCK(status.st_mode):
                found.add((int(entry.name), status.st_ino))
    return frozenset(found)


def cut(those: Iterable[Opened]) -> None:
    """Shut down those that are connections, and still what they were. Listening goes on."""
    for descriptor, inode in those:
        gone = contextlib.suppress(OSError)  # closed before, by either end
        with gone, socket.socket(fileno=os.dup(descriptor)) as end:
            same = os.fstat(end.fileno()).st_ino == inode
            if same and not end.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                end.shutdown(socket.SHUT_RDWR)
