"""The run as it happens, on standard error: one line a role."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from typing import Concatenate, ParamSpec

from rich.console import Console, RenderableType
from rich.live import Live as Screen
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from paceline.report.tables import ROUTINE, event_line
from paceline.report.words import many, number, percent, short
from paceline.types import Event, Progress, Score, record

REFRESH = 8  # times a second
WINDOW = 2.0  # seconds over which a rate is taken


@dataclass(slots=True)
class Line:
    """What is known of one role."""

    progress: Progress = field(default_factory=Progress)
    accuracy: float | None = None
    seen: deque[tuple[float, int]] = field(default_factory=deque)

    def tell(self, now: float, progress: Progress) -> None:
        self.progress = progress
        self.seen.append((now, progress.samples))
        while len(self.seen) > 2 and now - self.seen[1][0] >= WINDOW:
            self.seen.popleft()

    @property
    def rate(self) -> float | None:
        """Samples a second over the last seconds."""
        if len(self.seen) < 2:
            return None
        (start, before), (end, after) = self.seen[0], self.seen[-1]
        return (after - before) / (end - start) if end > start and after > before else None


Told = ParamSpec("Told")


def harmless(
    method: Callable[Concatenate[Live, Told], None],
) -> Callable[Concatenate[Live, Told], None]:
    """A terminal that went away must not end the training: the display gives up instead."""

    @wraps(method)
    def guarded(self: Live, *args: Told.args, **kwargs: Told.kwargs) -> None:
        if self.over:
            return
        try:
            method(self, *args, **kwargs)
        except Exception:  # noqa: BLE001 - whatever it is, it is only the display's
            self.over = True

    return guarded


class Live:
    """An observer that draws on a terminal; elsewhere it tells only the events that matter.

    It has no thread: it redraws when it is told something, so it never outlives the run, and a
    display that stands still means a run that reports nothing.
    """

    def __init__(
        self, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.console = console or Console(file=sys.stderr, highlight=False)
        self.clock = clock
        self.lines: dict[str, Line] = {}
        self.screen: Screen | None = None
        self.drawn = float("-inf")
        self.over = False

    @harmless
    def event(self, event: Event) -> None:
        if event.kind not in ROUTINE:
            self.console.print(Text(event_line(record(event)), style="yellow"), soft_wrap=True)

    @harmless
    def progress(self, role: str, progress: Progress) -> None:
        self.lines.setdefault(role, Line()).tell(self.clock(), progress)
        self._draw()

    @harmless
    def score(self, score: Score) -> None:
        line = self.lines.setdefault(score.role, Line())
        line.accuracy = score.values.get("accuracy", line.accuracy)
        self._draw()

    def close(self) -> None:
        """Clears the lines; may be called twice. Whatever is told after it is not shown."""
        self.over = True
        if self.screen:
            with suppress(Exception):
                self.screen.stop()
            self.screen = None

    def _draw(self) -> None:
        now = self.clock()
        if not self.console.is_terminal or now - self.drawn < 1 / REFRESH:
            return
        self.drawn = now
        if self.screen is None:
            # Roles may be forked while this shows: they must not inherit redirected streams.
            self.screen = Screen(
                console=self.console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self.screen.start()
        self.screen.update(self._lines(), refresh=True)

    def _lines(self) -> RenderableType:
        wide = self.console.width >= 100
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="cyan", no_wrap=True)
        grid.add_column(width=30 if wide else 12)
        for _ in range(4):
            grid.add_column(justify="right", no_wrap=True)
        for role, line in sorted(self.lines.items()):
            grid.add_row(role, *_cells(line, wide))
        return grid


def _cells(line: Line, wide: bool) -> list[RenderableType]:
    at = line.progress
    if at.steps:
        bar: RenderableType = ProgressBar(total=at.steps, completed=at.step, finished_style="green")
        steps = f"{number(at.step)}/{number(at.steps)}" + (f" epoch {at.epoch}" if wide else "")
    else:
        bar, steps = Text(), many(at.step, "step") if at.step else ""
    loss = f"loss {at.loss:.4f}" if at.loss is not None else ""
    accuracy = f"{percent(line.accuracy)} %" if line.accuracy is not None else ""
    speed = f"{number(line.rate) if wide else short(line.rate)} samples/s" if line.rate else ""
    return [bar, steps, speed, loss, accuracy]
