"""Compiled loops, compiled once on a machine and kept in the cache folder.

What is kept belongs to the content of all files that have loops: one may be part of another's, and
numba by itself looks only at the file a loop is in.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
from numba.core.runtime.nrt import rtsys

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


_Cache: Any = FunctionCache
_Places: Any = CompileResultCacheImpl


class KeptThere(_Places):  # type: ignore[misc]
    """In the cache folder, or nowhere: beside the source, where numba would look next, what is kept
    belongs to one file's content alone."""

    _locator_classes = (UserProvidedCacheLocator,)


class Kept(_Cache):  # type: ignore[misc]
    """Where a loop is kept. What is machine code already needs of numba only what it runs on: all
    that compiles, which would take a fifth of a second to import, waits until something does."""

    _impl_class = KeptThere

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def compiled(loop: Callable[..., Any]) -> Any:
    """The loop as machine code; it lets go of Python's lock."""
    made = numba.njit(nogil=True, **_HOW)(loop)
    with contextlib.suppress(RuntimeError):  # there is nowhere to keep it
        made._cache = Kept(loop)
    return made


inlined = numba.njit(**_HOW)  # a part of others
pasted = numba.njit(inline="always", **_HOW)  # a part of others before they are compiled


def warm() -> None:
    """Take the time that numba takes before the first loop of every process now."""
    compiled(_nothing)()


def _nothing() -> None:
    pass
