"""When the faults of `--inject` are due. Pure: asked, it says what to do; `harm.py` does it.

waiting ─due─► under way ─its time is over─► over
                   └ without an end: stays
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.spec.inject import LINES, Injection


@dataclass(frozen=True, slots=True)
class Act:
    """Begin or end a fault. `number` is its place in the list that was asked for."""

    number: int
    fault: Injection
    begins: bool


class Schedule:
    """Each fault begins once and ends once, whatever becomes of the role meanwhile."""

    def __init__(self, faults: Sequence[Injection]) -> None:
        self._faults = faults
        self._waiting = dict(enumerate(faults))
        self._ends: dict[int, float] = {}  # of those under way: when

    def due(self, now: float, steps: Mapping[str, int]) -> list[Act]:
        """What to do at `now`, in seconds since training began.

        `steps` has the roles that live, and how far each is; faults of others wait for them.
        """
        acts = [Act(n, self._faults[n], False) for n, end in self._ends.items() if now >= end]
        for act in acts:
            del self._ends[act.number]
        for number, fault in list(self._waiting.items()):
            if fault.own or any(role not in steps for role in fault.roles):
                continue
            if now >= fault.at if fault.step is None else steps[fault.role] >= fault.step:
                acts.append(self.begun(number, now))
        return acts

    def begun(self, number: int, now: float) -> Act:
        """This one has begun: said by `due`, or by the worker that does it to itself."""
        fault = self._faults[number]
        del self._waiting[number]
        if fault.kind != "kill":
            self._ends[number] = math.inf if fault.lasts is None else now + fault.lasts
        return Act(number, fault, True)

    def waits(self, number: int) -> bool:
        return number in self._waiting

    def missed(self) -> list[Injection]:
        """Those that have not begun."""
        return list(self._waiting.values())

    def told(self, role: str) -> dict[str, Any]:
        """What a worker must know: what it is to do to itself, and what holds for it now."""
        return {
            "own": [
                {"number": number, "act": fault.kind, "step": fault.step}
                for number, fault in self._waiting.items()
                if fault.own and fault.role == role
            ],
            "slow": self.slow(role),
            "full": self.full,
        }

    def lines(self, server: str) -> dict[str, Any]:
        """What a server must know: whose connections to it are cut, and whose are mute."""
        return {
            kind: [f.role for f in self._under_way() if (f.kind, f.peer) == (kind, server)]
            for kind in LINES
        }

    def slow(self, role: str) -> float:
        """How many times as long what it does takes just now."""
        return math.prod(f.factor for f in self._under_way() if (f.kind, f.role) == ("slow", role))

    def _under_way(self) -> list[Injection]:
        return [self._faults[number] for number in self._ends]

    @property
    def full(self) -> bool:
        return any(self._faults[number].kind == "disk-full" for number in self._ends)
