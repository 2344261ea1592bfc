"""The checkpoints of a run: what it takes to go on from there.

    checkpoints/00000007/
      worker-0.part     written by the role itself, beside training
      manifest.json     every part with its length and hash; written last, by the supervisor

A checkpoint without a sound manifest does not exist. Older ones are removed only once a newer one
is committed, so there is a good one at any moment after the first, whatever is killed when.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import StoreError
from paceline.store.atomic import write_atomic
from paceline.store.faults import cannot_read, cannot_write
from paceline.store.parts import Seal, check_part
from paceline.store.text import read_object, to_json
from paceline.types import record

MANIFEST = "manifest.json"
DIGITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one role kept: how far it was, and its file's seal. A server's steps are its updates.

    `round` is the next, where there are rounds.
    """

    role: str
    step: int
    epoch: int
    round: int
    bytes: int
    digest: str

    @property
    def kind(self) -> str:
        """Of the role."""
        return self.role.partition("-")[0]

    @property
    def seal(self) -> Seal:
        return Seal(bytes=self.bytes, digest=self.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """`run` says whose it is; `time` is in seconds of the run; `leases` is the book of them, where
    workers lease samples; `cut` tells of each server its blocks, where servers have parts."""

    number: int
    run: str
    time: float
    parts: tuple[Part, ...]
    leases: dict[str, Any] | None = None
    cut: Sequence[Sequence[Sequence[int]]] | None = None

    @property
    def crew(self) -> tuple[int, ...]:
        """The numbers of the workers that were there."""
        return tuple(int(part.role.partition("-")[2]) for part in self._workers)

    @property
    def step(self) -> int:
        """How far the slowest worker was."""
        return min(part.step for part in self._workers)

    @property
    def epoch(self) -> int:
        """How many epochs every worker had done."""
        return min(part.epoch for part in self._workers)

    @property
    def _workers(self) -> list[Part]:
        return [part for part in self.parts if part.kind == "worker"]

    def part(self, role: str) -> Part | None:
        return next((part for part in self.parts if part.role == role), None)


class Checkpoints:
    """Those of the run in `folder`, which is known by `run` wherever the folder is moved."""

    def __init__(self, folder: Path, run: str) -> None:
        self._root = folder / "checkpoints"
        self._run = run
        self._newest = 0

    def path(self, number: int, role: str) -> Path:
        """Where a role's part lies."""
        return self._root / f"{number:0{DIGITS}}" / f"{role}.part"

    def begin(self) -> int:
        """Make room for another. No number comes twice: a late part is not taken for a new one."""
        self._newest = number = max([self._newest, *self._numbers()]) + 1
        path = self._folder(number)
        try:
            self._root.mkdir(exist_ok=True)  # not the run's own folder, which may be gone
            path.mkdir()
        except OSError as wrong:
            raise cannot_write(path, wrong) from wrong
        return number

    def commit(self, checkpoint: Checkpoint) -> None:
        """All parts are written: from now on there is this checkpoint."""
        folder = self._folder(checkpoint.number)
        about = record(checkpoint)
        write_atomic(folder / MANIFEST, to_json(about | {"sha256": _digest(about)}, indent=1))
        for path in (folder, self._root):
            _settle(path)

    def prune(self, keep: int) -> None:
        """Remove all but the newest `keep` and those begun since."""
        committed = [n for n in self._numbers() if (self._folder(n) / MANIFEST).is_file()]
        for number in self._numbers():
            if committed and number < committed[-keep:][0]:
                self.discard(number)

    def since(self, number: int) -> list[int]:
        """Those begun later, whether they are any good or not."""
        return [each for each in self._numbers() if each > number]

    def discard(self, number: int) -> None:
        """Remove it; the manifest first, so that what is half removed is no checkpoint."""
        folder = self._folder(number)
        try:
            (folder / MANIFEST).unlink(missing_ok=True)
        except OSError as wrong:
            raise cannot_write(folder, wrong) from wrong
        shutil.rmtree(folder, ignore_errors=True)  # what stays is removed with the next

    def last(self, role: str | None = None) -> tuple[Checkpoint | None, list[str]]:
        """The newest good one, and what is wrong with each that is newer.

        All its parts are read and checked, or that of one role.
        """
        wrongs: list[str] = []
        for number in reversed(self._numbers()):
            try:
                if (found := self._sound(number, role)) is not None:
                    return found, wrongs
            except StoreError as wrong:
                wrongs.append(str(wrong))
        return None, wrongs

    def _sound(self, number: int, role: str | None) -> Checkpoint | None:
        path = self._folder(number) / MANIFEST
        if not path.is_file():  # whoever wrote it was killed before it was one
            return None
        checkpoint = _checkpoint(path)
        if (checkpoint.number, checkpoint.run) != (number, self._run):
            raise StoreError(f"'{path}' is of another checkpoint or of another run.")
        parts = [part for part in checkpoint.parts if role in (None, part.role)]
        if not parts:
            raise StoreError(f"'{path}' has no part of {role or 'any role'}.")
        for part in parts:
            check_part(self.path(number, part.role), part.seal)
        return checkpoint

    def _numbers(self) -> list[int]:
        try:
            names = [path.name for path in self._root.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as wrong:
            raise cannot_read(self._root, wrong) from wrong
        return sorted(int(name) for name in names if name.isdecimal() and len(name) == DIGITS)

    def _folder(self, number: int) -> Path:
        return self._root / f"{number:0{DIGITS}}"


def _checkpoint(path: Path) -> Checkpoint:
    about = read_object(path)
    digest = about.pop("sha256", None)
    if digest != _digest(about):
        raise StoreError(f"'{path}' is damaged: its content is not what was written.")
    try:
        parts = tuple(Part(**part) for part in about.pop("parts"))
        return Checkpoint(parts=parts, **about)
    except (KeyError, TypeError):
        raise StoreError(f"'{path}' was written by another version of Paceline.") from None


def _digest(about: dict[str, Any]) -> str:
    return hashlib.sha256(to_json(about).encode()).hexdigest()


def _settle(folder: Path) -> None:
    """Have the names in a folder on disk before anything that relies on them is removed."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as wrong:
        raise cannot_write(folder, wrong) from wrong
