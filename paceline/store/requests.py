"""Requests to a run that is under way, left in its folder, and what became of them.

    scaling/1.json           somebody asks             written once, by whoever gets the number
    scaling/1.answer.json    the supervisor answers    replaced whole, until it is final

Requests are taken in the order of their numbers.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import StoreError
from paceline.store.atomic import write_atomic
from paceline.store.faults import cannot_write
from paceline.store.text import read_object, to_json
from paceline.types import record

FOLDER = "scaling"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """How many there are to be; None: as many as there are."""

    workers: int | None = None
    servers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`state` is `doing`, then `done` or `refused`; `said` tells in sentences."""

    state: str
    said: tuple[str, ...] = ()

    @property
    def final(self) -> bool:
        return self.state != "doing"


class Requests:
    """Of the run in this folder. Whatever fails raises StoreError."""

    def __init__(self, run: Path) -> None:
        self._folder = run / FOLDER

    def leave(self, request: Request) -> int:
        """Its number: the next one that nobody has taken."""
        part = self._folder / f".{uuid.uuid4().hex}.part"
        try:
            self._folder.mkdir(exist_ok=True)
            part.write_text(to_json(record(request)))
            number = self.last() + 1
            while not _taken(part, self._path(number)):
                number += 1
            return number
        except OSError as wrong:
            raise cannot_write(self._folder, wrong) from wrong
        finally:
            part.unlink(missing_ok=True)

    def last(self) -> int:
        """The highest number there is; 0 if there is none."""
        names = [path.stem for path in self._folder.glob("*.json")]
        return max((int(name) for name in names if name.isdigit()), default=0)

    def there(self, number: int) -> bool:
        return self._path(number).exists()

    def read(self, number: int) -> Request:
        told = read_object(self._path(number))
        match told:
            case {"workers": int() | None as workers, "servers": int() | None as servers}:
                return Request(workers=workers, servers=servers)
        raise StoreError(f"'{self._path(number)}' is damaged: it is no request.")

    def answer(self, number: int, answer: Answer) -> None:
        write_atomic(self._answer(number), to_json(record(answer)))

    def answered(self, number: int) -> Answer | None:
        if not self._answer(number).exists():
            return None
        told = read_object(self._answer(number))
        return Answer(state=str(told.get("state")), said=tuple(told.get("said") or ()))

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.json"

    def _answer(self, number: int) -> Path:
        return self._folder / f"{number}.answer.json"


def _taken(part: Path, path: Path) -> bool:
    """Whether the part is now there under this name; not if another was quicker."""
    try:
        os.link(part, path)
    except FileExistsError:
        return False
    return True
