"""The board: a few numbers in shared memory that workers of one host post and wait for.

Every word has one writer at a time. A waiter spins a little where a core is free for it, then
sleeps on the word itself (a futex) and looks again at a deadline, so no wake-up can be lost for
good. Ownership of a shard is a record lock on the board's file: the kernel gives it back when
its holder dies, at whatever line.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import struct
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from paceline.errors import PeerLost
from paceline.transport.slate import OTHERS, Slate, process
from paceline.transport.sockets import PATIENCE

if TYPE_CHECKING:
    from torch import Tensor

_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine())
_WAIT, _WAKE, _ALL = 0, 1, 2**31 - 1
_NAP = 0.05  # seconds between looks while asleep
_LOOK = 0.002  # seconds between looks at more than a word
_FLOCK = struct.Struct("hhqqi4x")  # what the kernel tells of a record lock
WORD = 8
GONE = 2**62  # a round nobody waits for: this worker has left


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Board:
    """`spin` is for how many seconds a waiter looks before it sleeps; before it does, it says on
    its slate whom it waits for."""

    def __init__(self, fd: int, words: int, spin: float, slate: Slate | None = None) -> None:
        self._fd = fd
        self._area = mmap.mmap(fd, 2 * words * WORD)
        self._asleep = words  # as many words more: whether somebody may sleep on a word
        self.words = memoryview(self._area).cast("q")
        self.reals = memoryview(self._area).cast("d")  # the same words, as float64 numbers
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._area))
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall
        self._syscall.restype = ctypes.c_long
        self._spin = spin
        self._slate = slate or Slate()
        self._fence = threading.Lock()

    def doubles(self, first: int, count: int) -> Tensor:
        """Words as float64 numbers: no copy. Who may read them when, other words must say."""
        import torch

        return torch.frombuffer(self._area, dtype=torch.float64, count=count, offset=first * WORD)

    def post(self, word: int, value: int) -> None:
        """Write a word and wake whoever waits for it. What was written before is seen before."""
        words, asleep = self.words, self._asleep + word
        with self._fence:  # taking a lock orders memory on every processor
            words[word] = value
        if words[asleep] and _FUTEX is not None:
            words[asleep] = 0
            self._syscall(_FUTEX, self._at(word), _WAKE, _ALL, None, None, 0)

    def wait(
        self,
        word: int,
        least: int,
        what: str,
        unless: Callable[[], bool] | None = None,
        peer: int = OTHERS,
    ) -> bool:
        """Return once the word is at least `least`; or `unless` something else: False."""
        words = self.words
        if words[word] >= least:
            return True
        if unless is not None and unless():
            return False
        until = time.monotonic() + self._spin
        while time.monotonic() < until:
            if words[word] >= least:
                return True
        before = self._slate.waits(peer)
        try:
            return self._sleep(word, least, what, unless)
        finally:
            self._slate.back(before)

    def _sleep(self, word: int, least: int, what: str, unless: Callable[[], bool] | None) -> bool:
        words, deadline = self.words, time.monotonic() + PATIENCE
        nap = _Timespec(0, int(_NAP * 1e9))
        while (seen := words[word]) < least:
            if unless is not None and unless():
                return False
            if time.monotonic() > deadline:
                raise PeerLost(f"no sign of {what} for {PATIENCE:.0f} s.")
            if _FUTEX is None:
                time.sleep(0.0002)
            else:
                with self._fence:  # told before the word is looked at: the poster does it reversed
                    words[self._asleep + word] = 1
                expected = ctypes.c_uint32(seen & 0xFFFFFFFF)
                self._syscall(_FUTEX, self._at(word), _WAIT, expected, ctypes.byref(nap), None, 0)
        return True

    def until(self, true: Callable[[], bool], what: str) -> None:
        """Return once something is true that no single word tells: for waits that are rare."""
        deadline = time.monotonic() + PATIENCE
        before = self._slate.waits(OTHERS)
        while not true():
            if time.monotonic() > deadline:
                raise PeerLost(f"no sign of {what} for {PATIENCE:.0f} s.")
            time.sleep(_LOOK)
        self._slate.back(before)

    def owning(self, shard: int) -> AbstractContextManager[None]:
        """Be the one writer of a shard for a while."""
        return _Owning(self, shard)

    def lock(self, shard: int) -> None:
        """Wait for ownership, and have it until `unlock` or the end of this process.

        Asks again and again, ever less eagerly: a blocking request would have no deadline.
        """
        began, look = time.monotonic(), _NAP
        before: int | None = None
        while True:
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, shard)
                if before is not None:
                    self._slate.back(before)
                return
            except OSError as wrong:
                if wrong.errno not in (errno.EACCES, errno.EAGAIN):
                    raise
            waited = time.monotonic() - began
            if waited > PATIENCE:
                raise PeerLost(f"another worker has held shard {shard} for {PATIENCE:.0f} s.")
            if waited > look:
                look, was = waited + _NAP, self._slate.waits(process(self._owner(shard)))
                before = was if before is None else before
            if waited > self._spin:
                time.sleep(min(0.001, max(0.00002, waited / 8)))

    def _owner(self, shard: int) -> int:
        """The process that owns a shard, or nobody: 0."""
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, shard, 1, 0)
        kind, *_, pid = _FLOCK.unpack(fcntl.fcntl(self._fd, fcntl.F_GETLK, asked))
        return pid if kind != fcntl.F_UNLCK else 0

    def unlock(self, shard: int) -> None:
        fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, shard)

    def _at(self, word: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._address + word * WORD)


class _Owning(AbstractContextManager[None]):
    """Written out: a generator would take longer than the lock does."""

    __slots__ = ("_board", "_shard")

    def __init__(self, board: Board, shard: int) -> None:
        self._board = board
        self._shard = shard

    def __enter__(self) -> None:
        self._board.lock(self._shard)

    def __exit__(self, *_: object) -> None:
        self._board.unlock(self._shard)


def size_board(fd: int, words: int) -> None:
    os.ftruncate(fd, 2 * words * WORD)
