"""Paceline from Python: `fit` a task, get a `Run`."""

from __future__ import annotations

import atexit
import contextlib
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle

from paceline import env
from paceline.data.catalog import with_features
from paceline.data.open import preflight
from paceline.diagnose.trial import Tried, choose, short_specs, spec_of
from paceline.errors import Interrupted, PacelineError, RequestError, RunFailed, SpecError
from paceline.launch.asking import ask
from paceline.launch.nursery import Nursery
from paceline.launch.resuming import prepare, take_up
from paceline.launch.starter import Work
from paceline.launch.stopping import Stopping
from paceline.launch.supervisor import Supervisor
from paceline.report.summary import summarise
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.live import UNDER_WAY
from paceline.store.requests import Request
from paceline.tasks.catalog import BUILT_IN, BY_VALUE, data_of
from paceline.types import Observer, Silent

if TYPE_CHECKING:
    from paceline.tasks.base import Task


class Run:
    """A recorded run. Everything here is read from its folder."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.dir = folder.path
        self.summary: dict[str, Any] = summarise(folder)

    @property
    def status(self) -> str:
        return str(self.summary["status"])

    @property
    def quality(self) -> dict[str, Any]:
        return dict(self.summary["quality"])

    @property
    def throughput(self) -> dict[str, Any]:
        return dict(self.summary["throughput"])

    @property
    def roles(self) -> list[dict[str, Any]]:
        return list(self.summary["roles"])

    @property
    def verdict(self) -> dict[str, Any]:
        return dict(self.summary["verdict"])

    def table(self, width: int = 100) -> str:
        """The run's table as plain text."""
        from paceline.report.tables import render, run_table

        return render(run_table(self.summary), width=width)

    def parameters(self) -> dict[str, Any]:
        """The trained model's state, for `model.load_state_dict`."""
        import torch

        state: dict[str, Any] = torch.load(self.folder.parameters_path, weights_only=True)
        return state

    def __repr__(self) -> str:
        return f"<Run {self.folder.name}: {self.status}>"


def fit(
    task: str | Task | type[Task] = "softmax",
    *,
    out: str | Path | None = None,
    observer: Observer | None = None,
    **fields: Any,
) -> Run:
    """Train `task` and return the recorded run.

    `task` is a built-in's name, `file.py:Class`, `module:Class`, or a Task class or object of
    yours. `fields` are those of RunSpec: `strategy`, `workers`, `batch`, `epochs`, `lr`, …
    """
    work = Work()
    if not isinstance(task, str):
        from paceline.tasks.load import told

        made = task() if isinstance(task, type) else task
        spec = RunSpec(task=_name(type(made)), **fields)
        told(made, spec)
        work = Work(task=cloudpickle.dumps(made))
    else:
        spec = RunSpec(task=task, **fields)
    return execute(spec, out=Path(out) if out else env.runs_dir(), observer=observer, work=work)


def _name(kind: type) -> str:
    """What to call a task that was handed over as an object: where its class can be found."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return f"{file}:{kind.__name__}" if file else f"{BY_VALUE}:{kind.__name__}"


def execute(
    spec: RunSpec,
    *,
    out: Path,
    observer: Observer | None = None,
    work: Work | None = None,
) -> Run:
    """Run a spec to its end. Ctrl-C ends it cleanly, as a run whose status is `stopped`."""
    work = work or Work()
    spec = spec.absolute()
    with _nursery() as nursery:  # first, so that it imports torch while the rest is looked at
        return _execute(spec, out, observer or Silent(), work, nursery)


def _execute(spec: RunSpec, out: Path, observer: Observer, work: Work, nursery: Nursery) -> Run:
    look_at_data(spec)
    _make_room(spec)
    stopping = Stopping()
    with stopping.caught():  # from before there is a folder until its result is in it
        given = "object" if work.task else "script" if work.script else "spec"
        folder = RunFolder.create(out, spec, None, given)
        try:
            watched = _watched(spec, folder, observer)
            Supervisor(spec, folder, watched, nursery, work, stopping).run()
        finally:
            _record(folder)
    return Run(folder)


def resume(
    run: str | Path | Run,
    *,
    epochs: int | None = None,
    steps: int | None = None,
    out: str | Path | None = None,
    observer: Observer | None = None,
) -> Run:
    """Go on with a run that was stopped, failed or lost, from its last checkpoint.

    `run` is a recorded run, its folder, its name or a part of it, or `last`. `epochs` or `steps`
    say how long it is to be in all, if not as long as it was to be.
    """
    root = Path(out) if out else env.runs_dir()
    folder = run.folder if isinstance(run, Run) else RunFolder.find(root, str(run))
    stopping = Stopping()
    with stopping.caught():
        with folder.alone():
            spec, going_on = prepare(folder, epochs, steps)
            look_at_data(spec)
            take_up(folder, spec, going_on)
        try:
            with _nursery() as nursery:
                watched = _watched(spec, folder, observer or Silent())
                Supervisor(spec, folder, watched, nursery, Work(), stopping, going_on).run()
        finally:
            _record(folder)
    return Run(folder)


def try_advice(
    run: str | Path | Run,
    *,
    advice: int | None = None,
    turns: int = 3,
    seconds: float = 3.0,
    out: str | Path | None = None,
    told: Callable[[str], None] | None = None,
) -> Tried:
    """Run a recorded run's spec again, briefly, without its verdict's advice and with it, in turns.

    `run` is as for `resume`; `advice` the number of one of the bottleneck's, or the first that a
    program can follow. Nothing of these runs is kept. `told` hears how it goes.
    """
    root = Path(out) if out else env.runs_dir()
    folder = run.folder if isinstance(run, Run) else RunFolder.find(root, str(run))
    summary = summarise(folder)
    if summary["status"] in UNDER_WAY:
        raise RequestError(
            f"{folder.name} still trains, and would slow down what is tried beside it; "
            "try again once it is done."
        )
    asked = choose(summary["verdict"], advice)
    evidence = summary["verdict"]["evidence"]
    pace = evidence["steps"] / evidence["seconds"]
    specs = short_specs(spec_of(folder.read_spec()), folder.spec.batch, asked, pace, seconds)
    rates: tuple[list[float], list[float]] = ([], [])
    with tempfile.TemporaryDirectory(prefix="paceline-try-") as scratch:
        for turn in range(turns):
            for spec, each, what in zip(specs, rates, ("as it was", "advised"), strict=True):
                done = execute(spec, out=Path(scratch))
                if done.status == "stopped":
                    raise Interrupted("stopped; the advice was not tried to the end.")
                rate = done.throughput["samples_per_second"]
                if not rate:
                    raise RunFailed(f"a run {what} was too short to tell its samples a second.")
                each.append(rate)
                if told is not None:
                    told(f"turn {turn + 1} of {turns}, {what}: {rate:,.0f} samples/s")
    return Tried(asked=asked, before=tuple(rates[0]), after=tuple(rates[1]))


def scale(
    run: str | Path | Run,
    *,
    workers: int | None = None,
    servers: int | None = None,
    out: str | Path | None = None,
    told: Callable[[str], None] | None = None,
) -> tuple[str, ...]:
    """Have a run that is under way, here or elsewhere, go on with so many workers, and over TCP
    with so many servers.

    `run` is as for `resume`. Returns what was done, in sentences, once it is; `told` hears what is
    being waited for. A round's batch stays as large as it was, so the result does, too.
    """
    asked = {"--workers": workers, "--servers": servers}
    faults = [
        f"{flag} {count}: must be a whole number, at least 1."
        for flag, count in asked.items()
        if count is not None and not (isinstance(count, int) and count >= 1)
    ]
    if workers is None and servers is None:
        faults = ["say how many there are to be: --workers N, or --servers M."]
    if faults:
        raise SpecError(faults)
    root = Path(out) if out else env.runs_dir()
    folder = run.folder if isinstance(run, Run) else RunFolder.find(root, str(run))
    return ask(folder, Request(workers=workers, servers=servers), told or (lambda _: None))


def _watched(spec: RunSpec, folder: RunFolder, observer: Observer) -> Observer:
    """By whoever watches, and by TensorBoard where that is asked for."""
    if not spec.tensorboard:
        return observer
    from paceline.report.tensorboard import TensorBoard

    return TensorBoard(observer, folder, Path(spec.tensorboard))


def _make_room(spec: RunSpec) -> None:
    """Have the folder that TensorBoard's files go to, or refuse, before there is a run."""
    if spec.tensorboard:
        try:
            Path(spec.tensorboard).mkdir(parents=True, exist_ok=True)
        except OSError as wrong:
            raise SpecError(
                [f"--tensorboard: cannot make folder '{spec.tensorboard}': {wrong.strerror}."]
            ) from None


def look_at_data(spec: RunSpec) -> None:
    """Refuse what no worker could train on."""
    if spec.task in BUILT_IN:
        name = with_features(spec.data or data_of(spec.task), spec.features)
        preflight(name, spec.data_dir, spec.seed)


def launch_script(
    spec: RunSpec,
    script: Path,
    arguments: list[str],
    *,
    out: Path,
    observer: Observer | None = None,
    echo: int | None = 1,
) -> Run:
    """Run a script with a training loop of its own in every worker; see `paceline.parallel`.

    What worker-0 prints goes to the file descriptor `echo`, what the others print to their logs.
    """
    if spec.balance:
        raise SpecError(
            [
                "--balance: a script takes its batches itself, of a size that is its own; "
                "write a Task to have them shared out by speed."
            ]
        )
    work = Work(script=script.resolve(), arguments=tuple(arguments), echo=echo)
    return execute(spec, out=out, observer=observer, work=work)


def _record(folder: RunFolder) -> None:
    """Leave the summary in the folder, of failed runs too; it can always be made again."""
    try:
        folder.write_result(summarise(folder))
    except PacelineError:
        if folder.state in ("done", "stopped"):
            raise


_idle: list[Nursery] = []
_lock = threading.Lock()


@contextlib.contextmanager
def _nursery() -> Iterator[Nursery]:
    """A nursery for one run, kept for the next: torch is imported once, not once a run."""
    with _lock:
        nursery = _idle.pop() if _idle else None
    if nursery is not None and not nursery.alive():
        nursery.close()
        nursery = None
    nursery = nursery or Nursery()
    try:
        yield nursery
    finally:
        with _lock:
            _idle.append(nursery)


@atexit.register
def _let_go() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is ending already; nothing to add
    while _idle:
        _idle.pop().close()
