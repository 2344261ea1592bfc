"""Carries what workers without a group say, and what is decided of the next back to them."""

from __future__ import annotations

from collections.abc import Callable

from paceline.errors import RunFailed
from paceline.exchange.layout import in_a_group
from paceline.launch.crew import Crew, Member, say
from paceline.launch.generations import Generations
from paceline.spec import RunSpec
from paceline.transport.control import Message
from paceline.types import Parked, record


class Regrouping:
    """`tell` takes a role, what kind of event it is, and the detail."""

    def __init__(self, crew: Crew, tell: Callable[[str, str, str], None]) -> None:
        self._crew = crew
        self._tell = tell
        self._generations: Generations | None = None

    def start(self, spec: RunSpec, own_loop: bool) -> None:
        """Training begins. Scripts cannot come back, so they never meet again."""
        if in_a_group(spec) and not own_loop:
            crew = [member.index for member in self._crew.workers()]
            self._generations = Generations(crew, spec.step_samples * spec.workers)

    def hear(self, member: Member, message: Message) -> bool:
        """What a worker says that has no group, or forms one; False if it is something else."""
        kind, about = message["kind"], {k: v for k, v in message.items() if k != "kind"}
        if kind == "put":  # how it can be reached; the others know which group is theirs
            say([other for other in self._crew.workers() if other is not member], "put", **about)
        elif kind == "parked" and self._generations is not None:
            self._generations.parked(member.index, Parked(**about))
        return kind in ("put", "parked")

    def leave(self, member: Member) -> None:
        """A worker is asked to go: that takes a group without it."""
        if self._generations is not None:
            self._generations.leave(member.index)

    def gone(self, member: Member) -> None:
        """A process has ended."""
        if self._generations is not None and member.kind == "worker":
            self._generations.gone(member.index)

    def end(self) -> None:
        """All are done: nobody needs what another has."""
        self._generations = None
        for member in self._crew.workers():
            member.control.send("end")

    def turn(self) -> None:
        """Say what is due to be said."""
        generations = self._generations
        if generations is None:
            return
        if generations.lost:
            raise RunFailed(
                "all workers that had the parameters are gone; "
                "where the run has a checkpoint, paceline resume goes on from it."
            )
        for worker in generations.calls():
            control = self._member(worker).control
            control.send("regroup", generation=generations.current)
            if generations.broken:
                control.send("broken", generation=generations.current)
        before = generations.members
        plan = generations.plan()
        if plan is None:
            return
        for worker in sorted(before.union(plan.members)):  # those that are to go are told so, too
            self._member(worker).control.send("plan", **record(plan))
        names = ", ".join(self._member(worker).role for worker in plan.members)
        self._tell("supervisor", "regrouped", f"{names}, after round {plan.version}")

    def _member(self, worker: int) -> Member:
        return self._crew[f"worker-{worker}"]
