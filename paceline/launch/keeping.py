"""Checkpoints as the supervisor sees them: when one is wished for, and when it is one.

    wish ─keep─► workers, between two steps ─kept─► all parts here ─► manifest ─► older ones go

Nothing here ends a run: what the disk refuses is told, and training goes on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paceline.errors import StoreError
from paceline.exchange.layout import keeps
from paceline.launch.crew import Crew, Member
from paceline.measure.clock import Clock
from paceline.spec import RunSpec
from paceline.store.checkpoints import Checkpoint, Checkpoints, Part
from paceline.transport.control import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class GoingOn:
    """Where a run goes on: after so many seconds of it, from a checkpoint, newer ones damaged."""

    checkpoint: Checkpoint
    seconds: float
    damaged: tuple[str, ...] = ()


class Keeping:
    """`tell` takes a role, what kind of event it is, and the detail."""

    def __init__(
        self,
        kept: Checkpoints,
        run: str,
        crew: Crew,
        clock: Clock,
        tell: Callable[[str, str, str], None],
    ) -> None:
        self._kept = kept
        self._run = run
        self._crew = crew
        self._clock = clock
        self._tell = tell
        self._every = 0.0  # seconds; 0: no checkpoints
        self._keep = 1
        self._due = 0.0
        self._open: int | None = None  # the one that is being made
        self._parts: dict[str, Part] = {}
        self._in_step = False  # whether all parts must be of the same round
        self._last = False  # whether no more will be wished for

    def start(self, spec: RunSpec, parameters: int, own_loop: bool) -> None:
        """Training begins. A loop of the user's own has state that nobody else knows."""
        self._in_step = not spec.kind.alone
        if keeps(spec, parameters) and not own_loop:
            self._every, self._keep = spec.checkpoint_every, spec.keep_checkpoints
        self._due = self._clock.now() + self._every

    def turn(self) -> None:
        """Wish for a checkpoint if one is due, unless the one before is still being written."""
        if not self._every or self._last or self._clock.now() < self._due:
            return
        workers = self._crew.workers()
        training = any(not m.reached("trained") for m in workers)
        if self._open is None and training and all(_is_up(m) for m in workers):
            self._wish()
        self._due = self._clock.now() + self._every

    def at_stop(self) -> None:
        """The run was asked to stop: keep what it has got to."""
        if self._every and not self._last:
            self._last = True
            self._discard()
            self._wish()

    def _wish(self) -> None:
        try:
            self._open = self._kept.begin()
        except StoreError as wrong:
            self._tell("supervisor", "unkept", str(wrong))
            return
        self._parts = {}
        for member in self._crew.workers():
            self._ask(member)

    def _ask(self, member: Member) -> None:
        assert self._open is not None
        path = self._kept.path(self._open, member.role).resolve()
        member.control.send("keep", number=self._open, path=str(path), last=self._last)

    def hear(self, member: Member, message: Message) -> None:
        """A worker has kept its part, or says why not."""
        number = message.pop("number")
        if number != self._open:
            return  # it was given up meanwhile
        if "why" in message:
            self._tell(member.role, "unkept", message["why"])
            self._discard()
            return
        self._parts[member.role] = Part(role=member.role, **message)
        roles = [m.role for m in self._crew.workers()]
        if all(role in self._parts for role in roles):
            self._commit(number, roles)

    def _commit(self, number: int, roles: list[str]) -> None:
        self._open = None
        parts = tuple(self._parts[role] for role in roles)
        if self._in_step and len({part.step for part in parts}) > 1:
            self._tell("supervisor", "unkept", "the workers kept different rounds")
            return
        done = Checkpoint(number=number, run=self._run, time=self._clock.now(), parts=parts)
        try:
            self._kept.commit(done)
            self._kept.prune(self._keep)
        except StoreError as wrong:
            self._tell("supervisor", "unkept", str(wrong))
            return
        if self._last:
            self._tell(
                "supervisor", "kept", f"step {done.step}, to go on from with paceline resume"
            )

    def lost(self, member: Member) -> None:
        """A worker is gone, and with it its part of what is being made."""
        if self._open is not None and not self._last:
            self._discard()

    def welcome(self, member: Member) -> None:
        """A worker is back: it has not heard of what is being made."""
        if self._open is not None:
            self._ask(member)

    def source(self, role: str) -> dict[str, Any] | None:
        """What a worker that comes back goes on from; None: from the beginning."""
        checkpoint, damaged = self._kept.last(role)
        for wrong in damaged:
            self._tell(role, "damaged", wrong)
        return self.part(checkpoint, role) if checkpoint else None

    def part(self, checkpoint: Checkpoint, role: str) -> dict[str, Any] | None:
        """A role's part of a checkpoint, as it is told."""
        part = checkpoint.part(role)
        if part is None:
            return None
        path = self._kept.path(checkpoint.number, role).resolve()
        return {"path": str(path), "bytes": part.bytes, "sha256": part.sha256, "step": part.step}

    def close(self) -> None:
        self._discard()

    def _discard(self) -> None:
        number, self._open = self._open, None
        if number is not None:
            with contextlib.suppress(StoreError):  # it is no checkpoint in any case
                self._kept.discard(number)


def _is_up(member: Member) -> bool:
    return member.reached("ready") and not member.gone
