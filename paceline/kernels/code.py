"""Compiled code in a file, and in memory where it can be called.

The file is named for the loops and the processor; it has a hash of what it holds, and is used only
if nobody else could have written it.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import os
import platform
from collections.abc import Mapping
from pathlib import Path

from paceline import env
from paceline.files import replacing
from paceline.kernels.text import TEXTS

ALIGNED = 64


def code_path() -> Path | None:
    """Where this machine's code is kept; None if it cannot be told what processor it has."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return None
    about = {line for line in lines if line.startswith(("flags", "Features", "model name"))}
    known = json.dumps([TEXTS, platform.machine(), sorted(about)])
    return env.cache_dir() / "kernels" / f"{hashlib.sha256(known.encode()).hexdigest()[:32]}.code"


def write_code(path: Path, codes: Mapping[str, bytes]) -> None:
    made = {name: code.hex() for name, code in codes.items()}
    with replacing(path) as file:
        file.write(json.dumps({"sha256": _digest(made), "codes": made}).encode())


def read_code(path: Path) -> dict[str, bytes] | None:
    """What was written, by its name; None if that is not there or not to be trusted."""
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            kept = json.load(file)
        codes = kept["codes"]
        if state.st_uid not in (0, os.getuid()) or state.st_mode & 0o022:
            return None
        if kept["sha256"] != _digest(codes) or codes.keys() != TEXTS.keys():
            return None
        return {name: bytes.fromhex(code) for name, code in codes.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _digest(made: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()


class Executable:
    """Code in memory, for as long as this lives. OSError where the system forbids that."""

    def __init__(self, codes: Mapping[str, bytes]) -> None:
        places, size = {}, 0
        for name, code in codes.items():
            places[name] = size
            size += len(code) + -len(code) % ALIGNED
        self._area = mmap.mmap(-1, size)
        for name, code in codes.items():
            self._area[places[name] : places[name] + len(code)] = code
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self._area))
        libc = ctypes.CDLL(None, use_errno=True)
        runs = mmap.PROT_READ | mmap.PROT_EXEC
        if libc.mprotect(ctypes.c_void_p(begin), ctypes.c_size_t(size), runs):
            raise OSError(ctypes.get_errno(), "memory cannot be made executable")
        self.addresses = {name: begin + at for name, at in places.items()}
