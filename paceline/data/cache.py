"""Decode once: arrays kept on disk, opened in milliseconds and shared by all processes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from tokenize import TokenError

import numpy as np

from paceline import env
from paceline.data.base import Array
from paceline.files import replacing

# What numpy raises of a file that is not what it wrote, or is not there.
DAMAGED = (OSError, ValueError, TypeError, OverflowError, SyntaxError, TokenError)


def decoded(source: Path, decode: Callable[[Path], Array]) -> Array:
    """`decode(source)`, read-only, and memory-mapped from the cache where there is one.

    A source that changed is decoded again, and so is a cache file that is not whole. A cache that
    cannot be used costs time, never the run.
    """
    try:
        kept = _place(source, decode)
    except OSError:
        return decode(source)  # which knows better how to say what is wrong with the source
    found = _opened(kept)
    if found is not None:
        return found
    array = decode(source)
    array.setflags(write=False)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replacing(kept) as file:
            np.save(file, array, allow_pickle=False)
        _drop_older(kept)
    except OSError:
        return array
    found = _opened(kept)
    return array if found is None else found


def _place(source: Path, decode: Callable[[Path], Array]) -> Path:
    """Where the array is kept: named for source and decoder, then for the source's state."""
    source = source.absolute()
    with source.open("rb") as file:
        state = os.fstat(file.fileno())
        # A gzip file ends with its checksum: that tells apart what an image build dated the same.
        file.seek(max(0, state.st_size - 64))
        tail = file.read()
    who = _digest(f"{source}\0{decode.__module__}.{decode.__qualname__}".encode())
    what = _digest(f"{state.st_size} {state.st_mtime_ns} ".encode() + tail)
    return env.cache_dir() / "decoded" / f"{who}-{what}.npy"


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]


def _opened(kept: Path) -> Array | None:
    try:
        found = np.lib.format.open_memmap(kept, mode="r")
        whole = kept.stat().st_size == found.offset + found.nbytes
    except DAMAGED:  # it is rebuilt
        return None
    return found if whole else None


def _drop_older(kept: Path) -> None:
    who = kept.name.partition("-")[0]
    for other in kept.parent.glob(f"{who}-*.npy"):
        if other != kept:
            other.unlink(missing_ok=True)
