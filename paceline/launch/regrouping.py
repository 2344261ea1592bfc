"""Carries what workers without a group say to the muster, and what it decides back to them."""

from __future__ import annotations

from collections.abc import Callable

from paceline.errors import RunFailed
from paceline.exchange.layout import in_a_group
from paceline.launch.crew import Crew, Member
from paceline.launch.muster import Muster
from paceline.spec import RunSpec
from paceline.transport.control import Message
from paceline.types import Parked, record


class Regrouping:
    """`tell` takes a role, what kind of event it is, and the detail."""

    def __init__(self, crew: Crew, tell: Callable[[str, str, str], None]) -> None:
        self._crew = crew
        self._tell = tell
        self._muster: Muster | None = None

    def start(self, spec: RunSpec, own_loop: bool) -> None:
        """Training begins. Scripts cannot come back, so they never meet again."""
        if in_a_group(spec) and not own_loop:
            self._muster = Muster(spec.workers, spec.step_samples * spec.workers)

    def hear(self, member: Member, message: Message) -> None:
        """A worker has left its group, or has none yet."""
        if self._muster is not None:
            self._muster.parked(member.index, Parked(**message))

    def rests(self, member: Member) -> None:
        """A worker has taken its last step."""
        if self._muster is not None:
            self._muster.rests(member.index)

    def leave(self, member: Member) -> None:
        """A worker is asked to go: that takes a group without it."""
        if self._muster is not None:
            self._muster.leave(member.index)

    def gone(self, member: Member) -> None:
        """A process has ended."""
        if self._muster is not None and member.kind == "worker":
            self._muster.gone(member.index)

    def end(self) -> None:
        """All are done: nobody needs what another has."""
        self._muster = None
        for member in self._crew.workers():
            member.control.send("end")

    def turn(self) -> None:
        """Say what is due to be said."""
        muster = self._muster
        if muster is None:
            return
        if muster.lost:
            raise RunFailed(
                "all workers that had the parameters are gone; "
                "where the run has a checkpoint, paceline resume goes on from it."
            )
        for worker in muster.calls():
            self._member(worker).control.send("regroup", generation=muster.generation)
        before = muster.members
        plan = muster.plan()
        if plan is None:
            return
        for worker in sorted(before.union(plan.members)):  # those that are to go are told so, too
            self._member(worker).control.send("plan", **record(plan))
        names = ", ".join(self._member(worker).role for worker in plan.members)
        self._tell("supervisor", "regrouped", f"{names}, after round {plan.version}")

    def _member(self, worker: int) -> Member:
        return self._crew[f"worker-{worker}"]
