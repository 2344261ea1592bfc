"""The run as it happens, on standard error: one line a role, and one for all of it."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from typing import Concatenate, ParamSpec

from rich.console import Console, Group, RenderableType
from rich.live import Live as Screen
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from paceline.report.tables import event_line
from paceline.report.words import duration, many, number, percent, short
from paceline.types import Event, Progress, Score, record

REFRESH = 8  # times a second
WIDE = 100  # columns from which there is room for numbers in full
WINDOW = 2.0  # seconds over which a rate is taken
SAYING = 30.0  # seconds between two lines where nothing can be drawn


@dataclass(slots=True)
class Line:
    """What is known of one role."""

    progress: Progress = field(default_factory=Progress)
    accuracy: float | None = None
    stalled: bool = False
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

    @property
    def ahead(self) -> float | None:
        """About how many samples are to come."""
        at = self.progress
        if not at.steps or not at.step:
            return None
        return max(0, at.steps - at.step) * at.samples / at.step


Told = ParamSpec("Told")


def harmless(
    method: Callable[Concatenate[Live, Told], None],
) -> Callable[Concatenate[Live, Told], None]:
    """A terminal that went away must not end the training: the display gives up instead."""

    @wraps(method)
    def guarded(self: Live, /, *args: Told.args, **kwargs: Told.kwargs) -> None:
        if self.over:
            return
        try:
            method(self, *args, **kwargs)
        except Exception as wrong:  # noqa: BLE001 - whatever it is, it is only the display's
            self.over = True
            with suppress(OSError, ValueError):  # there may be nobody to tell
                sys.stderr.write(f"The display gave up, the run goes on: {wrong!r}\n")

    return guarded


class Live:
    """An observer that draws on a terminal; elsewhere it tells events that matter, and now and then
    how far the run is.

    It has no thread: it redraws when it is told something, so it never outlives the run, and a
    display that stands still means a run that reports nothing. Without `draw` it tells events
    alone, for runs that write to the same terminal themselves.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        draw: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = console or Console(file=sys.stderr, highlight=False)
        self.draws = draw and self.console.is_terminal
        self.says = draw and not self.draws
        self.clock = clock
        self.said = clock()
        self.lines: dict[str, Line] = {}
        self.screen: Screen | None = None
        self.drawn = float("-inf")
        self.over = False

    @harmless
    def event(self, event: Event) -> None:
        if event.kind == "left":
            self.lines.pop(event.role, None)
        elif event.role in self.lines and event.kind in ("stalled", "moving", "died"):
            self.lines[event.role].stalled = event.kind == "stalled"
            self.drawn = float("-inf")  # it may be a while until somebody tells anything
            self._draw()
        if event.kind != "failed":  # raised as well, and told by whoever catches it
            self.console.print(Text(event_line(record(event)), style="yellow"), soft_wrap=True)

    @harmless
    def progress(self, role: str, progress: Progress) -> None:
        self.lines.setdefault(role, Line()).tell(self.clock(), progress)
        self._draw()
        self._say()

    @harmless
    def score(self, score: Score) -> None:
        workers = [role for role in self.lines if role.startswith("worker-")]
        for role in [score.role] if score.role else workers:  # no role: all share the parameters
            line = self.lines.setdefault(role, Line())
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
        if not self.draws or now - self.drawn < 1 / REFRESH:
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

    def _say(self) -> None:
        now = self.clock()
        if self.says and now - self.said >= SAYING and (told := self._together()):
            self.said = now
            self.console.print(Text(told), soft_wrap=True)

    def _together(self) -> str:
        """How far all workers are: samples, samples a second, and how long it will take."""
        workers = [line for role, line in self.lines.items() if role.startswith("worker-")]
        samples = sum(line.progress.samples for line in workers)
        if not samples:
            return ""
        told = [f"{number(samples)} samples"]
        if loss := [line.progress.loss for line in workers if line.progress.loss is not None]:
            told.append(f"loss {sum(loss) / len(loss):.4f}")
        if rate := sum(line.rate or 0.0 for line in workers):
            told.append(f"{number(rate)} samples/s")
            ahead = [line.ahead for line in workers]
            if all(of is not None for of in ahead):
                told.append(f"{duration(sum(of or 0.0 for of in ahead) / rate)} left")
        return ", ".join(told)

    def _lines(self) -> RenderableType:
        wide = self.console.width >= WIDE
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="cyan", no_wrap=True)
        grid.add_column(width=30 if wide else 12)
        for least in (0, 18, 11, 7):  # so that columns stand still while numbers grow
            grid.add_column(justify="right", no_wrap=True, min_width=least)
        for role in sorted(self.lines, key=lambda name: (name.rpartition("-")[0], len(name), name)):
            grid.add_row(role, *_cells(self.lines[role], wide))
        return Group(grid, Text(self._together(), style="dim"))


def _cells(line: Line, wide: bool) -> list[RenderableType]:
    at = line.progress
    bar: RenderableType = ""
    steps = many(at.step, "step") if at.step else ""
    if at.steps:
        bar = ProgressBar(total=at.steps, completed=at.step)
        steps = f"{number(at.step)}/{number(at.steps)}" + (f" epoch {at.epoch + 1}" if wide else "")
    speed: RenderableType = ""
    if line.stalled:
        speed = Text("stalled", style="yellow")
    elif line.rate:
        speed = f"{number(line.rate) if wide else short(line.rate)} samples/s"
    elif moved := at.sent + at.received:
        speed = f"{number(moved / 1e6)} MB moved"
    loss = "" if at.loss is None else f"loss {at.loss:.4f}"
    accuracy = "" if line.accuracy is None else f"{percent(line.accuracy)} %"
    return [bar, steps, speed, loss, accuracy]
