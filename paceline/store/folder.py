"""RunFolder: everything that is kept of one run.

    20261115-213012-softmax-ps-async-2w/
      spec.json         what was asked, what it was resolved to, and where it ran
      roles.json        the run's state and its roles, as they are now
      events.jsonl      what happened              ┐
      scores.jsonl      how good the model was     ├ appended, by the supervisor alone
      resources.jsonl   what each role used        │
      hosts.jsonl       how busy each host was     ┘
      steps/ROLE.steps  one row a step, by the worker itself
      steps/ROLE.spans  what a role was at besides: pauses of a worker, a server's time
      logs/ROLE.log     what the role printed
      stacks/           where roles were that stood still, each time
      checkpoints/      what it takes to go on: see checkpoints.py
      final.pt          the trained parameters
      result.json       the run's summary, once it has ended

Every file is replaced whole or only grows, so that a run can be read while it is written.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from paceline.errors import StoreError
from paceline.exchange.catalog import STRATEGIES
from paceline.spec import RunSpec
from paceline.store.atomic import write_atomic
from paceline.store.checkpoints import Checkpoints
from paceline.store.lines import LineFile
from paceline.store.live import STATES, launcher, live_fault, true_state
from paceline.store.lookup import SPEC, locate
from paceline.store.making import alone, new_folder
from paceline.store.origin import origin
from paceline.store.spans import Spans, read_spans, spans_path
from paceline.store.steps import Steps, read_steps
from paceline.store.text import read_object, to_json
from paceline.types import Event, Facts, HostResources, Resources, Score, record

ROLES = "roles.json"
RESULT = "result.json"

Record = TypeVar("Record")


class RunFolder:
    """One run's folder, made by `create`, `open` or `find`. Whatever fails raises StoreError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parameters_path = path / "final.pt"
        self._events = LineFile(path / "events.jsonl")
        self._scores = LineFile(path / "scores.jsonl")
        self._resources = LineFile(path / "resources.jsonl")
        self._hosts = LineFile(path / "hosts.jsonl")

    @classmethod
    def create(
        cls, root: Path, spec: RunSpec, label: str | None = None, given: str = "spec"
    ) -> RunFolder:
        """A new folder in `root`, seen by others only once it is whole.

        The launcher is this process. `label` stands in the name instead of task and strategy.
        `given` says what the workers run: what the spec names, or an `object` or a `script`.
        """
        what = label or _describe(spec)
        return cls(new_folder(root, what, lambda path: _fill(cls(path), spec, given)))

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The run in an existing folder."""
        if not (path / SPEC).is_file():
            raise StoreError(f"'{path}' is not a run's folder: it has no {SPEC}.")
        folder = cls(path)
        folder.read_spec()
        return folder

    @classmethod
    def find(cls, root: Path, name: str) -> RunFolder:
        """The run a person means by a path, a name, part of a name, or `last`.

        RequestError if there is none, or more than one.
        """
        return cls.open(locate(root, name))

    @property
    def name(self) -> str:
        return self.path.resolve().name

    def check(self) -> None:
        """StoreError if it is gone. Files that are open are written all the same, to nowhere."""
        if not (self.path / SPEC).exists():
            raise StoreError(
                f"'{self.path}' is gone: somebody has removed or renamed the run's folder."
            )

    def steps_path(self, role: str) -> Path:
        return self.path / "steps" / f"{role}.steps"

    def steps(self, role: str) -> Steps:
        """A worker's steps, a row each with the columns of STEP: phases in seconds."""
        return read_steps(self.steps_path(role))

    def spans(self, role: str) -> Spans | None:
        """Of a worker its pauses (PAUSES), of a server all its time (SERVING): rows with `begin`,
        and the seconds for each name since. None of runs from before this was recorded."""
        return read_spans(spans_path(self.path, role))

    def log_path(self, role: str) -> Path:
        return self.path / "logs" / f"{role}.log"

    def write_stack(self, role: str, time: float, text: str) -> str:
        """Where a role stood still, and when: the file's name within the folder."""
        name = f"stacks/{role}-{time:.1f}s.txt"
        with contextlib.suppress(OSError):  # told by whoever writes next
            (self.path / "stacks").mkdir(exist_ok=True)
        write_atomic(self.path / name, text)
        return name

    def stepped_roles(self) -> list[str]:
        """Roles that have recorded steps, worker-2 before worker-10."""
        roles = [path.stem for path in (self.path / "steps").glob("*.steps")]
        return sorted(roles, key=lambda role: (len(role), role))

    # What was asked for, and what it became.

    def read_spec(self) -> dict[str, Any]:
        about = read_object(self.path / SPEC)
        if not isinstance(about.get("spec"), dict):
            raise StoreError(f"'{self.path / SPEC}' is damaged: it has no spec.")
        return about

    def write_resolved(
        self,
        spec: RunSpec,
        facts: Facts,
        t0: float | None = None,
        recipe: dict[str, Any] | None = None,
    ) -> None:
        """Add what the open fields of the spec turned out to be, and the clock records count from.

        `t0` is the launcher's `time.monotonic()` at second 0 of every record; `recipe` is what the
        learning rate follows, where that is ours to say.
        """
        about = self.read_spec() | {
            "resolved": spec.model_dump(),
            "facts": record(facts),
            "recipe": recipe,
            "t0": t0,
        }
        write_atomic(self.path / SPEC, to_json(about, indent=1))

    def take_over(self, spec: RunSpec) -> None:
        """The launcher is now this process, and this is what is asked of the run."""
        about = self.read_spec()
        about["spec"] |= {"epochs": spec.epochs, "steps": spec.steps}
        write_atomic(self.path / SPEC, to_json(about, indent=1))
        self.write_live("starting", os.getpid(), [])

    def alone(self) -> AbstractContextManager[None]:
        """Keep others from taking the run up at the same time; RequestError if one does already."""
        return alone(self.path)

    @property
    def id(self) -> str:
        """Its own, wherever the folder is moved."""
        return str(self.read_spec().get("id", ""))

    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.path, self.id)

    @property
    def spec(self) -> RunSpec:
        """The spec as resolved, or as asked while it is not."""
        about = self.read_spec()
        told = about.get("resolved") or about["spec"]
        # JSON has lists where a spec has tuples.
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in told.items()
        }
        # Checked when the run began; by now the files that it names may be elsewhere.
        spec = RunSpec.model_construct(**values)
        if spec.strategy not in STRATEGIES:
            raise StoreError(
                f"'{self.path}' has a strategy that is not known here, '{spec.strategy}': "
                "another version of Paceline wrote it."
            )
        return spec

    # How it is now.

    def write_live(self, state: str, launcher_pid: int, roles: list[dict[str, Any]]) -> None:
        if state not in STATES:
            raise ValueError(f"'{state}' is no state of a run")
        live = {"state": state, "launcher": launcher(launcher_pid), "roles": roles}
        write_atomic(self.path / ROLES, to_json(live, indent=1))

    def read_live(self) -> dict[str, Any]:
        live = read_object(self.path / ROLES)
        if fault := live_fault(live):
            raise StoreError(f"'{self.path / ROLES}' is damaged: {fault}.")
        return live

    @property
    def state(self) -> str:
        """One of STATES, or `lost` if the launcher died without saying how the run ended."""
        return true_state(self.read_live())

    # What happened, as it happens.

    def append_event(self, event: Event) -> None:
        self._events.append([event])

    def append_score(self, score: Score) -> None:
        self._scores.append([score])

    def rewrite_scores(self, scores: list[Score]) -> None:
        """Before the first is appended: have these alone."""
        write_atomic(self._scores.path, "".join(to_json(record(score)) for score in scores))

    def append_resources(self, samples: list[Resources]) -> None:
        self._resources.append(samples)

    def append_host(self, sample: HostResources) -> None:
        self._hosts.append([sample])

    def events(self) -> list[Event]:
        return list(self._records(self._events, lambda values: Event(**values)))

    def scores(self) -> list[Score]:
        return list(self._records(self._scores, _score))

    def resources(self) -> list[Resources]:
        return list(self._records(self._resources, Resources.of))

    def hosts(self) -> list[HostResources]:
        """None of runs from before hosts were sampled."""
        return list(self._records(self._hosts, HostResources.of))

    def _records(
        self, lines: LineFile, make: Callable[[dict[str, Any]], Record]
    ) -> Iterator[Record]:
        for values in lines.read():
            try:
                yield make(values)
            except (TypeError, AttributeError, KeyError):
                raise StoreError(f"'{lines.path}' is damaged: a line has other fields.") from None

    # What came of it.

    def write_result(self, result: dict[str, Any]) -> None:
        write_atomic(self.path / RESULT, to_json(result, indent=1))

    def read_result(self) -> dict[str, Any]:
        return read_object(self.path / RESULT)

    def close(self) -> None:
        """Close the files being appended to."""
        for lines in (self._events, self._scores, self._resources, self._hosts):
            lines.close()


def _fill(folder: RunFolder, spec: RunSpec, given: str) -> None:
    (folder.path / "steps").mkdir()
    (folder.path / "logs").mkdir()
    about = {
        **origin(),
        "id": secrets.token_hex(8),
        "given": given,
        "spec": spec.model_dump(),
        "resolved": None,
        "facts": None,
    }
    write_atomic(folder.path / SPEC, to_json(about, indent=1))
    folder.write_live("starting", os.getpid(), [])


def _describe(spec: RunSpec) -> str:
    return f"{spec.task.rpartition(':')[2]}-{spec.strategy}-{spec.workers}w"


def _score(told: dict[str, Any]) -> Score:
    """JSON has no NaN: a loss that is not a number was written as null."""
    values = {k: math.nan if v is None else v for k, v in told["values"].items()}
    return Score(**{**told, "values": values})
