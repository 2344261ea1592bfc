"""Asking a run that is under way, in whatever process, for more or fewer workers."""

from __future__ import annotations

import time
from collections.abc import Callable

from paceline.errors import RequestError, RunFailed
from paceline.store.folder import RunFolder
from paceline.store.live import UNDER_WAY
from paceline.store.requests import Answer, Request, Requests

LOOK = 0.05  # seconds between looks for an answer
PATIENCE = 600.0  # seconds: a worker may be in a long step


def ask(folder: RunFolder, request: Request, told: Callable[[str], None]) -> tuple[str, ...]:
    """What was done, in sentences. `told` hears what is being waited for.

    RequestError if it cannot be done, RunFailed if it came to nothing.
    """
    requests = Requests(folder.path)
    _under_way(folder)
    number = requests.leave(request)
    answer = _answer(folder, requests, number, told)
    if answer.state == "refused":
        raise RequestError(" ".join(answer.said))
    if answer.state != "done":
        raise RunFailed(" ".join(answer.said))
    return answer.said


def _answer(
    folder: RunFolder, requests: Requests, number: int, told: Callable[[str], None]
) -> Answer:
    deadline = time.monotonic() + PATIENCE
    before: Answer | None = None
    while True:
        running = folder.state in UNDER_WAY  # looked at first: its last words may be an answer
        answer = requests.answered(number)
        if answer is not None and answer.final:
            return answer
        if not running:
            raise RunFailed(f"'{folder.name}' ended before it was done: it is {folder.state}.")
        if answer is not None and answer != before:
            before = answer
            told(" ".join(answer.said))
        if time.monotonic() > deadline:
            raise RunFailed(
                f"'{folder.name}' has not answered for {PATIENCE:.0f} s; the request stands, "
                f"and paceline show {folder.name} tells what became of it."
            )
        time.sleep(LOOK)


def _under_way(folder: RunFolder) -> None:
    if (state := folder.state) not in UNDER_WAY:
        raise RequestError(
            f"'{folder.name}' is {state}: only a run that is under way can be scaled."
        )
