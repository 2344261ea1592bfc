from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console

from paceline.report.live import Live
from paceline.types import Event, Observer, Progress, Score


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def a_terminal(width: int = 120) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, color_system=None, width=width)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def a_score(accuracy: float, role: str = "") -> Score:
    return Score(time=1.0, role=role, step=1, epoch=1, final=False, values={"accuracy": accuracy})


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_a_line_a_role(width: int) -> None:
    console, clock = a_terminal(width), Clock()
    live: Observer = Live(console, clock=clock)
    for now, step in ((0.0, 0), (1.0, 100), (2.0, 200)):
        clock.now = now
        for role in ("worker-10", "worker-2"):
            progress = Progress(step=step, steps=1_200, epoch=1, samples=200 * step, loss=0.4351)
            live.progress(role, progress)
        live.progress("server-0", Progress(step=2 * step, sent=70_000_000, received=5_000_000))
    live.score(a_score(0.9206))
    clock.now = 3.0
    live.progress("server-0", Progress(step=400, sent=70_000_000, received=5_000_000))
    live.close()
    server, second, tenth, both = shown(console).rsplit("server-0", 1)[1].splitlines()[:4]
    assert "400 steps" in server
    assert "75 MB moved" in server
    assert "worker-2 " in second  # as a person counts
    assert "worker-10" in tenth
    for told in ("━", "200/1,200", "samples/s", "loss 0.4351", "92.06 %"):
        assert told in tenth
    assert ("20,000 samples/s" if width == 120 else "20.0 k samples/s") in tenth
    assert both.strip() == "80,000 samples, loss 0.4351, 40,000 samples/s, 10.0 s left"
    assert max(len(line) for line in (server, second, tenth, both)) <= width


def test_a_role_that_stands_still_is_shown_to_at_once() -> None:
    console, clock = a_terminal(), Clock()
    live = Live(console, clock=clock)
    live.progress("worker-0", Progress(step=1, steps=9, samples=3))
    live.event(Event(time=5.0, role="worker-0", kind="stalled", detail="has been computing"))
    assert "stalled" in shown(console).rsplit("worker-0", 1)[1]
    live.event(Event(time=9.0, role="worker-0", kind="moving", detail="after 9.0 s"))
    assert "stalled" not in shown(console).rsplit("worker-0", 1)[1]
    live.event(Event(time=9.0, role="nursery", kind="stalled", detail="has no line here"))
    live.close()


def test_it_draws_eight_times_a_second_at_most() -> None:
    console, clock = a_terminal(), Clock()
    live = Live(console, clock=clock)
    for i in range(1_000):
        clock.now = i / 1_000
        live.progress("worker-0", Progress(step=i, steps=1_000, samples=i))
    assert 7 <= shown(console).count("worker-0") <= 9
    live.close()


def test_elsewhere_only_events_are_told() -> None:
    console = Console(file=io.StringIO(), width=40)
    live = Live(console)
    live.progress("worker-0", Progress(step=1, steps=2, samples=3))
    live.score(a_score(0.5, "worker-0"))
    live.event(
        Event(time=1.26, role="supervisor", kind="stopping", detail="asked to stop; workers end")
    )
    live.event(Event(time=1.3, role="supervisor", kind="failed", detail="told by the error itself"))
    live.close()
    assert shown(console) == "1.3 s  supervisor  stopping: asked to stop; workers end\n"


def test_elsewhere_it_is_told_now_and_then_how_far_all_are() -> None:
    """A log of a run of hours says more than that it began."""
    console, clock = Console(file=io.StringIO(), width=40), Clock()
    live = Live(console, clock=clock)
    for now in range(65):
        clock.now = float(now)
        for role in ("worker-0", "worker-1"):
            live.progress(role, Progress(step=now, steps=100, samples=500 * now, loss=0.5))
    live.close()
    assert shown(console).splitlines() == [
        "29,500 samples, loss 0.5000, 1,000 samples/s, 70.5 s left",
        "59,500 samples, loss 0.5000, 1,000 samples/s, 40.5 s left",
    ]


def test_a_run_that_writes_to_the_terminal_itself_is_not_drawn_over() -> None:
    console = a_terminal()
    live = Live(console, draw=False)
    live.progress("worker-0", Progress(step=1, steps=2, samples=3))
    live.close()
    assert shown(console) == ""


def test_a_terminal_that_goes_away_does_not_stop_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console, clock = a_terminal(), Clock()
    live = Live(console, clock=clock)
    live.progress("worker-0", Progress(step=1, steps=2, samples=3))
    console.file.close()
    clock.now = 1.0
    live.progress("worker-0", Progress(step=2, steps=2, samples=6))
    live.event(Event(time=1.0, role="worker-0", kind="died"))
    live.close()
    live.close()
    assert capsys.readouterr().err.count("The display gave up, the run goes on") == 1


def test_no_thread_is_left_and_the_cursor_is_back() -> None:
    before = threading.active_count()
    console = a_terminal()
    live = Live(console)
    live.progress("worker-0", Progress(step=1, steps=2, samples=3))
    live.close()
    assert threading.active_count() == before
    assert shown(console).rindex("\x1b[?25h") > shown(console).rindex("\x1b[?25l")


def test_a_role_that_scores_alone_has_the_accuracy_alone() -> None:
    console, clock = a_terminal(), Clock()
    live = Live(console, clock=clock)
    live.progress("worker-0", Progress(step=1, steps=2, samples=3))
    clock.now = 1.0
    live.score(a_score(0.5, "evaluator"))
    live.close()
    worker = next(line for line in shown(console).splitlines()[::-1] if "worker-0" in line)
    assert "50.00 %" in shown(console)
    assert "50.00 %" not in worker
