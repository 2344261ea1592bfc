"""Compiled loops, compiled once on a machine and kept in the cache folder.

What is kept belongs to the content of all files that have loops: one may be part of another's, and
numba by itself looks only at the file a loop is in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from paceline import env

_ROOT = Path(__file__).parents[1]


def _digest() -> str:
    found = hashlib.sha256(numba.__version__.encode())
    for path in sorted((*_ROOT.glob("kernels/*.py"), *_ROOT.glob("data/sparse/*.py"))):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


vars(numba.config)["CACHE_DIR"] = str(env.cache_dir() / "loops" / _digest())


# What is divided by zero is infinite, as everywhere in numpy and torch, and not asked about before.
_HOW: dict[str, Any] = {"error_model": "numpy"}


def compiled(loop: Callable[..., Any]) -> Any:
    """The loop as machine code; it lets go of Python's lock."""
    try:
        return numba.njit(nogil=True, cache=True, **_HOW)(loop)
    except RuntimeError:  # there is nowhere to keep it
        return numba.njit(nogil=True, **_HOW)(loop)


inlined = numba.njit(**_HOW)  # a part of others
pasted = numba.njit(inline="always", **_HOW)  # a part of others before they are compiled


def warm() -> None:
    """Take the second before its first loop that numba takes in every process now."""
    compiled(_nothing)()


def _nothing() -> None:
    pass
