"""The slate: what a role is at, in memory of its own that the supervisor reads without its help.

    word 0   what it does, and whom it waits for
    word 1   the round or step it is in
    word 2   grows as long as it goes on, where the other two may stay as they are
    word 3   the bell: grows when something was said to the role
    from a page on: stacks, where the role writes them when a signal asks for them

Each word has one writer, the role's main thread, and is written in one piece; the bell has the
supervisor. To write one is to write to memory: no call, no lock, nobody woken. So a role says what
it is about to wait for before it waits, and what it says stands there also if it is stopped, hangs,
or is gone.

What every step does writes to `words` itself: where a step takes half a millisecond and drives all
else out of the cache, a call costs many times what it writes.
"""

from __future__ import annotations

import mmap
import os
import tempfile

from paceline.transport import memory

# What a role does: the lowest byte of word 0.
BORN, BUILD, READY, MEET, DATA, COMPUTE, EXCHANGE, WAIT, PARKED, SCORE = range(10)
COPY, WRITE, OWN, TRAINED, SNAPSHOT, SERVE, FOLLOW, ENDING, IMPORT = range(10, 19)
COMPILE, RESTORE = range(19, 21)

# Whom it waits for: the next byte; above it which one of them, or a process's id.
NOBODY, WORKER, SERVER, STANDBY, PROCESS, OTHERS = (kind << 8 for kind in range(6))
KINDS = {WORKER: "worker", SERVER: "server", STANDBY: "standby"}

PAGE = 4096
AT, ROUND, _BEAT, BELL = range(4)  # of words


def worker(index: int) -> int:
    return WORKER | index << 16


def server(index: int) -> int:
    return SERVER | index << 16


def process(pid: int) -> int:
    return PROCESS | pid << 16


class Slate:
    """Without a descriptor it is in this process's own memory, and nobody reads it."""

    def __init__(self, fd: int | None = None) -> None:
        self.fd = fd
        self._area = None if fd is None else mmap.mmap(fd, PAGE)
        self.words = memoryview(bytearray(PAGE) if self._area is None else self._area).cast("q")

    @classmethod
    def new(cls) -> Slate:
        """One to hand to a role. It has no name, so nothing of it can be left behind."""
        if memory.available():
            fd = memory.new_segment("slate")
        else:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.ftruncate(fd, PAGE)
        os.lseek(fd, PAGE, os.SEEK_SET)
        return cls(fd)

    # Of the role.

    def at(self, doing: int) -> int:
        """From now on the role does this; what was there before, to go `back` to."""
        words = self.words
        before, words[AT] = words[AT], doing
        return before

    def waits(self, peer: int) -> int:
        """It is about to wait for a peer; otherwise as `at`."""
        return self.at(WAIT | peer)

    def back(self, before: int) -> None:
        self.words[AT] = before

    def begin(self, round_: int, doing: int = COMPUTE) -> None:
        """A step begins, for this round."""
        self.words[ROUND] = round_
        self.words[AT] = doing

    def beat(self) -> None:
        """It goes on, though what it does has no other name."""
        self.words[_BEAT] += 1

    # Of whoever watches it.

    def read(self) -> tuple[int, int, int]:
        """What it does and waits for, the round, and the beat."""
        return self.words[AT], self.words[ROUND], self.words[_BEAT]

    def ring(self) -> None:
        """Something was said to the role: it need not look for it all the time."""
        if self.fd is not None:
            self.words[BELL] += 1

    def wipe(self) -> None:
        """Make room for stacks."""
        assert self.fd is not None
        os.ftruncate(self.fd, PAGE)
        os.lseek(self.fd, PAGE, os.SEEK_SET)  # the role writes from there: the file is shared

    def written(self) -> str:
        """The stacks there are."""
        assert self.fd is not None
        size = os.fstat(self.fd).st_size - PAGE
        return os.pread(self.fd, size, PAGE).decode(errors="replace")

    def close(self) -> None:
        """May be called twice."""
        self.words.release()
        if self._area is not None and self.fd is not None:
            self._area.close()
            os.close(self.fd)
            self.fd = None


def doing(at: int) -> int:
    """What a role does, of word 0."""
    return at & 0xFF


def peer(at: int) -> tuple[int, int]:
    """Whom it waits for, of word 0: what kind, and which."""
    return at & 0xFF00, at >> 16
