"""Checkpoints as the supervisor sees them: when one is wished for, and when it is one.

    wish ─keep─► servers ─keeping─► ─keep─► workers, between two steps
         ─kept─► all parts here ─► manifest, with the book of leases ─► older ones go

Servers are ready before any worker asks them to keep a round. The last checkpoint of a run goes the
other way round: workers keep it after their last step, and servers once nobody pushes any more.
Nothing here ends a run: what the disk refuses is told, and training goes on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paceline.errors import StoreError
from paceline.launch.crew import Crew, Member
from paceline.launch.leases import LeaseBook
from paceline.measure.clock import Clock
from paceline.server.shards import Cut
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
        going_on: GoingOn | None = None,
    ) -> None:
        self._kept = kept
        self._run = run
        self._crew = crew
        self._clock = clock
        self._tell = tell
        self._going_on = going_on
        self._every = 0.0  # seconds; 0: no checkpoints
        self._keep = 1
        self._due = 0.0
        self._open: int | None = None  # the one that is being made
        self._asked: set[tuple[str, int, bool]] = set()  # whom, in which life, and whether at once
        self._ready: set[str] = set()  # servers that know of it
        self._stale: dict[str, int] = {}  # workers, by life, that may still want one given up
        self._parts: dict[str, Part] = {}
        self._in_step: tuple[str, ...] = ()  # kinds of roles whose parts are of the same round
        self._leases: LeaseBook | None = None
        self._served: Callable[[], Cut | None] = lambda: None
        self._last = False  # whether no more will be wished for

    def start(
        self,
        spec: RunSpec,
        leases: LeaseBook | None,
        own_loop: bool,
        cut: Callable[[], Cut | None],
    ) -> None:
        """Training begins. A loop of the user's own has state that nobody else knows.

        `cut` says how the parameters are cut, where servers keep them.
        """
        self._served = cut
        if spec.kind.samples == "slices" and not spec.kind.alone:
            # With backups nobody waits for all of the workers, and servers know where to go on.
            self._in_step = ("server",) if spec.backup else ("server", "worker")
        self._leases = leases
        if not own_loop:
            self._every, self._keep = spec.checkpoint_every, spec.keep_checkpoints
        self._due = self._clock.now() + self._every

    def turn(self) -> None:
        """Wish for a checkpoint if one is due, unless the one before is still being written."""
        settled = all(_takes_part(m) for m in self._everybody())
        if self._open is not None and not self._last and not settled:
            self._discard()
        if self._open is not None:
            self._ask_around()
        if not self._every or self._last or self._clock.now() < self._due:
            return
        workers = self._crew.workers()
        training = any(not m.reached("trained") for m in workers)
        # Where all keep after the same round, everybody must want the same one.
        stale = any(self._stale.get(m.role) == m.life for m in workers)
        if self._open is None and training and settled and not stale:
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
        self._asked.clear()
        self._ready.clear()
        if self._leases is not None:
            self._leases.remember()
        self._ask_around()

    def _everybody(self) -> list[Member]:
        """Whose parts a checkpoint has."""
        return [*self._crew.workers(), *self._crew.servers()]

    def _ask_around(self) -> None:
        """Ask whoever is to know of it by now. Once all steps are taken, servers keep at once."""
        workers, servers = self._crew.workers(), self._crew.servers()
        ended = all(member.reached("trained") for member in workers)
        for member in servers:
            if ended or not self._last:
                self._ask(member, at_once=ended)
        if self._last or all(member.role in self._ready for member in servers):
            for place, member in enumerate(workers):
                self._ask(member, at_once=self._last, place=place, of=len(workers))

    def _ask(self, member: Member, *, at_once: bool, **among: int) -> None:
        """Of a worker `among` says which of those who keep it is."""
        assert self._open is not None
        asked = (member.role, member.life, at_once)
        if asked in self._asked or not _is_up(member) or member.role in self._parts:
            return
        self._asked.add(asked)
        path = self._kept.path(self._open, member.role).resolve()
        member.control.send("keep", number=self._open, path=str(path), last=at_once, **among)

    def hear(self, member: Member, message: Message) -> None:
        """A role is ready to keep its part, has kept it, or says why not."""
        number = message.pop("number")
        if number != self._open:
            return  # it was given up meanwhile
        if not message:
            self._ready.add(member.role)
            self._ask_around()
            return
        if "why" in message:
            self._tell(member.role, "unkept", message["why"])
            self._asked.discard((member.role, member.life, False))
            self._discard()
            return
        self._parts[member.role] = Part(role=member.role, **message)
        roles = [m.role for m in self._everybody()]
        if all(role in self._parts for role in roles):
            self._commit(number, roles)

    def _commit(self, number: int, roles: list[str]) -> None:
        self._open = None
        book = self._leases.kept() if self._leases is not None else None
        self._forget()
        parts = tuple(self._parts[role] for role in roles)
        if len({part.round for part in parts if part.kind in self._in_step}) > 1:
            self._tell("supervisor", "unkept", "the roles kept different rounds")
            return
        done = Checkpoint(
            number=number,
            run=self._run,
            time=self._clock.now(),
            parts=parts,
            leases=book,
            cut=self._served(),
        )
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
        """A role is gone, and with it its part of what is being made.

        Of the last one it comes back to keep its part; if it has left, the others keep for it.
        """
        if self._open is None or member.kind not in ("worker", "server"):
            return
        if not self._last or member.left:
            self._discard()
        if self._last and member.left:
            self._wish()

    def source(self, spec: RunSpec, worker: Member) -> dict[str, Any] | None:
        """What a worker goes on from, if it does not begin at the beginning."""
        if not worker.life:
            return self.first(worker.role)
        if not spec.kind.alone:
            return None  # the others have it
        checkpoint, damaged = self._kept.last(worker.role)
        for wrong in damaged:
            self._tell(worker.role, "damaged", wrong)
        return self._part(checkpoint, worker.role) if checkpoint else None

    def first(self, role: str) -> dict[str, Any] | None:
        """A role's part of the checkpoint that the run goes on from, if it does."""
        return self._part(self._going_on.checkpoint, role) if self._going_on else None

    def cut(self) -> Cut | None:
        """How servers had the parameters when that was kept."""
        kept = self._going_on.checkpoint.cut if self._going_on is not None else None
        return [[(begin, end) for begin, end in spans] for spans in kept] if kept else None

    def _part(self, checkpoint: Checkpoint, role: str) -> dict[str, Any] | None:
        part = checkpoint.part(role)
        if part is None:
            return None
        path = self._kept.path(checkpoint.number, role).resolve()
        return {"path": str(path), "bytes": part.bytes, "digest": part.digest, "step": part.step}

    @property
    def taken_up(self) -> bool:
        """Whether the run goes on from a checkpoint."""
        return self._going_on is not None

    def close(self) -> None:
        self._discard()

    def forgot(self, member: Member) -> None:
        """A worker does not want any more what was given up."""
        self._stale.pop(member.role, None)

    def _forget(self) -> None:
        """What was remembered for the one that was being made."""
        if self._leases is not None:
            self._leases.forget()

    def _discard(self) -> None:
        number, self._open = self._open, None
        self._forget()
        if number is None:
            return
        for member in self._crew.workers():
            asked = (member.role, member.life, False) in self._asked
            if asked and member.role not in self._parts and not member.gone:
                self._stale[member.role] = member.life
                member.control.send("keep", number=number, path="", last=False)
        with contextlib.suppress(StoreError):  # it is no checkpoint in any case
            self._kept.discard(number)


def _is_up(member: Member) -> bool:
    return member.reached("ready") and not member.gone


def _takes_part(member: Member) -> bool:
    """Whether it is there with all the others, and stays until all steps are taken."""
    if member.reached("trained"):
        return True
    at_it = member.at_it or not member.life or member.kind != "worker"
    return _is_up(member) and at_it and not member.leaving and not member.absent
