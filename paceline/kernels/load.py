"""The loops, ready to be called.

To the bit they do what torch does, and for less. A small model's few thousand numbers take less
time than torch's calls, whose code a backward pass has driven out of the cache; a large model's
millions come from memory and go there once where torch takes several passes.

They are compiled once on a machine, in half a second, by the first run that gains a good part of
that by them; those after it have them for nothing.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from functools import cache
from typing import Any

from paceline.kernels.code import Executable, code_path, read_code

WORTH = 0.2  # seconds a run has to gain
SAVES = 2e-5, 3e-10  # seconds a step, and for each parameter
PATIENCE = 30.0  # seconds
WIDE = 16  # floats at a time that go past the cache; where they go must be a multiple of them

_ADDRESS, _NUMBER, _COUNT = ctypes.c_void_p, ctypes.c_float, ctypes.c_int64


class Kernels:
    """All take addresses of contiguous float32 vectors of at least one number, on the CPU.

    `stream` and `pour` take multiples of WIDE numbers, to where 64 bytes begin. `gather` takes
    bytes and int64 rows; how many rows it is to gather, bytes of a row, and how many rows there
    are.
    """

    def __init__(self, code: Executable) -> None:
        self._code = code
        self.blend = self._function("blend", 4, 1)
        self.descend = self._function("descend", 3, 1)
        self.descend_between = self._function("descend_between", 5, 2)
        self.stream = self._function("stream", 3, 1)
        self.pour = self._function("pour", 2, 0)
        self.gather = self._function("gather", 3, 1, 3, gives=_COUNT)

    def _function(
        self, name: str, vectors: int, numbers: int, counts: int = 1, gives: Any = None
    ) -> Any:
        takes = [_ADDRESS] * vectors + [_NUMBER] * numbers + [_COUNT] * counts
        return ctypes.PYFUNCTYPE(gives, *takes)(self._code.addresses[name])


@cache
def kernels(compiling: bool) -> Kernels | None:
    """Those of this machine; None where there cannot be any, or unless `compiling` none yet."""
    path = code_path()
    if path is None:
        return None
    codes = read_code(path)
    if codes is None and compiling:
        command = [sys.executable, "-m", "paceline.kernels.compile", str(path)]
        try:  # what goes wrong there stands in the role's log
            subprocess.run(command, timeout=PATIENCE, check=True)
        except (OSError, subprocess.SubprocessError) as wrong:
            print(f"no compiled loops, torch does it all: {wrong}", file=sys.stderr)  # noqa: T201
            return None
        codes = read_code(path)
    try:
        return Kernels(Executable(codes)) if codes is not None else None
    except OSError:
        return None


def worthwhile(size: int, steps: int) -> Kernels | None:
    """For a worker with a model of this size that is to take so many steps."""
    a_step, a_parameter = SAVES
    return kernels(steps * (a_step + size * a_parameter) > WORTH)
