"""Study: a question, and all that decides which runs answer it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from paceline.errors import RequestError

HOLDS = ("batch", "global-batch")
WORKS = ("total", "per-worker")
METRICS = ("accuracy", "loss")
REPEATS = 3
MOST_REPEATS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Runs that differ in `vary` and agree in `run`, each repeated.

    `vary` has the values of a field, by its name; a value that is a mapping sets several fields at
    once, whatever it is listed under. `baseline` has the fields of the runs that others are held
    against; without it the first cell is the one. `work` says what is the same for any number of
    workers: all there is to do (`total`), or what one of them has to do (`per-worker`). `hold` says
    which batch is the same: that of each worker, or that of all together. `target` is a metric's
    name and value; without it, the best that all runs reach.
    """

    name: str = "sweep"
    question: str = ""
    run: Mapping[str, Any] = field(default_factory=dict)
    vary: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    baseline: Mapping[str, Any] = field(default_factory=dict)
    work: str = "total"
    hold: str = "batch"
    repeats: int = REPEATS
    order_seed: int = 0
    target: tuple[str, float] | None = None

    def __post_init__(self) -> None:
        faults = [
            f"{what} '{value}': must be one of {', '.join(known)}."
            for what, value, known in (
                ("work", self.work, WORKS),
                ("--hold", self.hold, HOLDS),
            )
            if value not in known
        ]
        if not 1 <= self.repeats <= MOST_REPEATS:
            faults.append(f"--repeats {self.repeats}: must be from 1 to {MOST_REPEATS}.")
        if self.target is not None and self.target[0] not in METRICS:
            faults.append(f"--target {self.target[0]}: must be one of {', '.join(METRICS)}.")
        faults += [f"'{name}' varies over nothing." for name, each in self.vary.items() if not each]
        if faults:
            raise RequestError("\n".join(faults))

    def as_object(self) -> dict[str, Any]:
        """Plain values, equal after a trip through JSON."""
        told = asdict(self)
        told["run"], told["baseline"] = dict(self.run), dict(self.baseline)
        told["vary"] = {name: list(values) for name, values in self.vary.items()}
        told["target"] = list(self.target) if self.target else None
        return told


def study_of(told: Mapping[str, Any]) -> Study:
    """The study that `as_object` gave."""
    vary = {name: tuple(values) for name, values in told["vary"].items()}
    target = (str(told["target"][0]), float(told["target"][1])) if told["target"] else None
    return Study(**{**told, "vary": vary, "target": target})
