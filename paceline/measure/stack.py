"""The stack of a process that may hang: asked for by a signal, written by its fault handler.

The handler is C and takes no lock of Python's, so it answers also where Python is stuck. A process
that is stopped, or sleeps in the kernel where no signal wakes it, cannot: of it the kernel tells.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

# Of those that nobody has a use for: tasks and schedulers have SIGUSR1 and SIGUSR2.
SIGNAL: int | None = signal.SIGRTMAX - 4 if hasattr(signal, "SIGRTMAX") else None

PROC = Path("/proc")
ROOM = 1 << 16  # of what the kernel says of all threads, at most
_THREAD = re.compile(r"^(Current thread|Thread) 0x\w+[^\n]*\n((?:  .*\n?)*)", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)
_LIBRARY = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib")})
_OURS = str(Path(__file__).parents[1])


class Frame(NamedTuple):
    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.function} ({Path(self.file).name}, line {self.line})"


def answer(fd: int) -> None:
    """From now on this process writes its threads' stacks there when it is asked."""
    if SIGNAL is not None:
        faulthandler.register(SIGNAL, file=fd, all_threads=True, chain=False)


def ask(pid: int) -> bool:
    """Ask a process for them: False if it would not answer. One that does not know the signal
    would die of it."""
    if SIGNAL is None or not _catches(pid, SIGNAL):
        return False
    try:
        os.kill(pid, SIGNAL)
    except OSError:
        return False
    return True


def _catches(pid: int, number: int) -> bool:
    found = re.search(r"^SigCgt:\s*(\w+)", _read(f"{pid}/status"), re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (number - 1) & 1)


def innermost(text: str, within: str = "") -> list[Frame]:
    """Of stacks as they were written: where it is, and who of the user's own had it go there.

    Of the main thread, or of one that goes through the file `within`, if there is one.
    """
    found = [(which, _frames(lines)) for which, lines in _THREAD.findall(text)]
    main = [frames for which, frames in found if which == "Current thread"]
    inside = [f for which, f in found if within and which == "Thread" and _through(f, within)]
    frames = next(iter((*inside, *main)), [])
    own = [f for f in frames if not f.file.startswith((*_LIBRARY, _OURS, "<"))]
    return list(dict.fromkeys((*frames[:1], *own[:1])))


def _frames(lines: str) -> list[Frame]:
    return [Frame(file, int(line), function) for file, line, function in _FRAME.findall(lines)]


def _through(frames: Sequence[Frame], file: str) -> bool:
    return any(frame.file.endswith(file) for frame in frames)


def kernel_view(pid: int) -> str:
    """What the kernel knows of a process and its threads, without its help."""
    told = []
    with contextlib.suppress(OSError):
        for thread in sorted((PROC / str(pid) / "task").iterdir(), key=lambda path: int(path.name)):
            at = f"{pid}/task/{thread.name}"
            state = re.search(r"^State:\s*(.*)$", _read(f"{at}/status"), re.MULTILINE)
            call = _read(f"{at}/syscall").split(maxsplit=1)
            told.append(
                f"thread {thread.name} ({_read(f'{at}/comm')}): {state[1] if state else 'gone'}, "
                f"waits in {_read(f'{at}/wchan') or 'nothing told'}, "
                f"system call {call[0] if call else 'not told'}\n"
            )
            told += [f"  {line}\n" for line in _read(f"{at}/stack").splitlines()]
    return "".join(told)[:ROOM]


def _read(name: str) -> str:
    """What may not be read is not told."""
    try:
        return (PROC / name).read_text(errors="replace").strip()
    except OSError:
        return ""
