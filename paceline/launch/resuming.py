"""Taking up a run that was stopped, failed or lost: whether it can be, and from where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from paceline.errors import RequestError
from paceline.launch.keeping import GoingOn
from paceline.spec import RunSpec
from paceline.store.checkpoints import Checkpoint
from paceline.store.folder import RunFolder
from paceline.store.live import UNDER_WAY
from paceline.tasks.catalog import BY_VALUE
from paceline.types import Score

AGAIN = "start it again with paceline run"


def prepare(
    folder: RunFolder, epochs: int | None = None, steps: int | None = None
) -> tuple[RunSpec, GoingOn]:
    """The spec to go on with, and from where; RequestError if the run cannot be taken up.

    `epochs` or `steps` say how long the run is to be in all, if not as long as before.
    """
    _refuse(folder, longer=epochs is not None or steps is not None)
    spec = RunSpec(**folder.spec.model_dump())  # checked anew: its files may be gone by now
    if epochs is not None or steps is not None:
        spec = spec.with_(epochs=epochs, steps=steps)
    kept, damaged = folder.checkpoints().last()
    if kept is None:
        wrong = f" that is sound ({damaged[0].rstrip('.')})" if damaged else ""
        raise RequestError(f"'{folder.name}' has no checkpoint{wrong}; {AGAIN}.")
    if (spec.steps or kept.step + 1) <= kept.step:
        raise RequestError(f"--steps {spec.steps}: '{folder.name}' has taken {kept.step} already.")
    done = kept.epoch
    if epochs is not None and epochs <= done:
        raise RequestError(f"--epochs {epochs}: '{folder.name}' has done {done} already.")
    return spec, GoingOn(checkpoint=kept, seconds=_seconds(folder, kept), damaged=tuple(damaged))


def take_up(folder: RunFolder, spec: RunSpec, going_on: GoingOn) -> None:
    """Make the run this process's own, and its records what they were at the checkpoint."""
    kept = folder.checkpoints()
    for number in kept.since(going_on.checkpoint.number):
        kept.discard(number)
    folder.rewrite_scores(_still_true(folder.scores(), going_on.checkpoint))
    folder.take_over(spec)


def _refuse(folder: RunFolder, *, longer: bool) -> None:
    name, state = folder.name, folder.state
    about = folder.read_spec()
    if state in UNDER_WAY:
        raise RequestError(f"'{name}' is still {state}; stop it first, or let it end.")
    if about.get("given") == "object" or str(about["spec"].get("task")).startswith(BY_VALUE):
        raise RequestError(
            f"'{name}' trained a task that was handed over from Python or a script, which its "
            "folder does not hold; start it again from there."
        )
    if state == "done" and not longer:
        raise RequestError(
            f"'{name}' is done; to train it further, say how far: "
            f"paceline resume {name} --epochs N."
        )


def _seconds(folder: RunFolder, kept: Checkpoint) -> float:
    """How long the run has lasted. Records go on from there, as if nothing had been between."""
    stamps = [event.time for event in folder.events()]
    stamps += [sample.time for sample in folder.resources()]
    stamps += [score.time for score in folder.scores()]
    return max([kept.time, *stamps])


def _still_true(scores: Iterable[Score], kept: Checkpoint) -> list[Score]:
    """Scores of parameters up to the checkpoint. None of them is the run's last any more."""
    found = []
    for score in scores:
        part = kept.part(score.role)
        if score.step <= (part.step if part else kept.step):
            found.append(replace(score, final=False))
    return found
