"""Runs that last until they were resized, or harmed while they were."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor, nn

from tools.counting import Counting

Found = TypeVar("Found")


def eventually(look: Callable[[], Found], seconds: float, what: str = "") -> Found:
    """The first true thing that `look` sees; AssertionError if it sees none in time."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or look}"
        time.sleep(0.005)
    return found


class Held(Counting):
    """Counts how often each sample was trained on, slowly until it is let go."""

    def __init__(self, go: Path, apart: int = 1) -> None:
        self.go = go
        self.apart = apart

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        self.seconds = 0.0005 if self.go.exists() else 0.02
        return super().loss(model, batch)


@contextmanager
def beside(runs: Path, act: Callable[[Path], None]) -> Iterator[None]:
    """Do `act` to the folder of the run in `runs` once it takes steps, then let it go."""
    wrong: list[BaseException] = []

    def work() -> None:
        try:
            act(_folder(runs))
        except BaseException as error:  # noqa: BLE001  raised where it is waited for
            wrong.append(error)
        finally:
            (runs.parent / "go").touch()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(30)
    if wrong:
        raise wrong[0]


def _folder(runs: Path) -> Path:
    def look() -> Path | None:
        for steps in runs.glob("[!.]*/steps/*.steps"):
            if steps.stat().st_size > 100:
                return steps.parent.parent
        return None

    found = eventually(look, 20, "steps of the run")
    assert found is not None
    return found
