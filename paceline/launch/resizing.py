"""Roles that come and go while a run goes on: by request, or because a worker was told to end.

    request ─► cut the parameters anew       ─taken over─► workers connect to other servers
            ─► start workers that are to come ─started───► they take part        ┐
            ─► ask the last ones to leave     ─left──────► the others go on      ┴► answer ─► next

Whoever comes is started as one that comes back, and whoever leaves says so with its last gradient:
a round's batch stays as large as it was, and is shared out among those who are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from paceline.errors import RunFailed, StoreError
from paceline.exchange.layout import layout
from paceline.launch import recutting
from paceline.launch.course import Course
from paceline.launch.crew import Crew, Member
from paceline.launch.keeping import Keeping
from paceline.launch.leasing import Leasing
from paceline.launch.policy import Answer as Decision
from paceline.launch.recutting import Recutting
from paceline.launch.regrouping import Regrouping
from paceline.launch.resolve import check_memory
from paceline.launch.starter import Starter
from paceline.launch.stopping import Stopping
from paceline.measure.clock import Clock
from paceline.server.catalog import STATES
from paceline.spec import RunSpec
from paceline.store.requests import Answer, Request, Requests
from paceline.transport.control import Message
from paceline.types import Facts

LOOK = 0.25  # seconds between looks for a request
ENDING = "the run is at its end: all of it is given out already"


def refusal(spec: RunSpec, workers: int, room: int) -> str | None:
    """Why a run of this spec, as resolved, cannot have so many workers; None if it can."""
    whole = spec.step_samples * spec.workers
    in_rounds = spec.kind.samples == "slices"
    nothing = f"workers of strategy '{spec.strategy}' share nothing that another could join"
    reasons = (
        (spec.kind.alone, nothing),
        (spec.backup > 0, f"--backup {spec.backup} counts on the {spec.workers} of the start"),
        (workers < 1, "at least one has to stay"),
        (workers > room, f"this run has room for {room}"),
        (in_rounds and workers > whole, f"a round's batch has {whole} samples, one each at most"),
    )
    return next((f"--workers {workers}: {why}" for wrong, why in reasons if wrong), None)


@dataclass(slots=True)
class Change:
    """A request that is being done: who is still to come, and to go, and who has."""

    number: int
    request: Request
    began: float
    before: int  # how many workers there were
    begun: bool = False  # whether workers know of it; servers come first
    coming: set[int] = field(default_factory=set)
    going: set[int] = field(default_factory=set)
    recut: list[str] = field(default_factory=list)
    joined: list[tuple[str, int | None]] = field(default_factory=list)  # role, round
    left: list[tuple[str, int | None]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def said(self, seconds: float) -> list[str]:
        """What was done, in sentences."""
        after = f"after {seconds:.1f} s"
        told = [
            f"{names} {verb} {where} {after}" if where else f"{names} {verb} {after}"
            for some, verb, at in ((self.joined, "joined", "at"), (self.left, "left", "after"))
            for names, where in _by_round(some, at)
        ]
        return [*self.recut, *told, *self.failed]


def _by_round(some: list[tuple[str, int | None]], at: str) -> list[tuple[str, str]]:
    """Who did it in which round: names, and the round in words."""
    rounds: dict[int | None, list[str]] = {}
    for role, now in some:
        rounds.setdefault(now, []).append(role)
    return [
        (names(roles), "" if now is None else f"{at} round {now}") for now, roles in rounds.items()
    ]


def names(roles: list[str]) -> str:
    """`worker-1, worker-2 and worker-3`"""
    *first, last = sorted(roles, key=lambda role: (len(role), role))
    return f"{', '.join(first)} and {last}" if first else last


class Resizing:
    """One request at a time. `tell` takes a role, what kind of event it is, and the detail."""

    def __init__(
        self,
        course: Course,
        requests: Requests,
        crew: Crew,
        starter: Starter,
        regrouping: Regrouping,
        leasing: Leasing,
        keeping: Keeping,
        stopping: Stopping,
        clock: Clock,
        tell: Callable[[str, str, str], None],
    ) -> None:
        self._course = course
        self._requests = requests
        self._crew = crew
        self._starter = starter
        self._regrouping = regrouping
        self._recutting = Recutting(crew, starter, clock)
        self._leasing = leasing
        self._keeping = keeping
        self._stopping = stopping
        self._clock = clock
        self._tell = tell
        self._next = requests.last() + 1  # what was asked of a former supervisor is its own
        self._due = 0.0
        self._change: Change | None = None
        self._training = False
        self._why: dict[int, str] = {}  # by worker: who has it leave

    def start(self) -> None:
        """Training begins."""
        self._training = True

    @property
    def _facts(self) -> Facts:
        assert self._course.facts is not None
        return self._course.facts

    def turn(self) -> None:
        """Take the next request, or look how far this one is."""
        self._recutting.turn()
        if self._change is not None:
            self._go_on(self._change)
        elif self._training and self._clock.now() >= self._due:
            self._due = self._clock.now() + LOOK
            self._look()

    def hear(self, member: Member, message: Message) -> bool:
        """Whether this was for here."""
        match message["kind"]:
            case "started":
                self._on_started(member, message["round"])
            case "left":
                self._on_left(member, message)
            case "notice":
                self._on_notice(member)
            case _:
                return False
        return True

    def end(self, why: str) -> None:
        """No more roles come or go."""
        self._training = False
        if (change := self._change) is not None:
            self._change = None
            self._answer(change.number, "failed", *change.said(self._since(change)), why)
        while self._next <= self._requests.last():
            self._answer(self._next, "refused", why)
            self._next += 1

    # A request.

    def _look(self) -> None:
        number = self._next
        if not self._requests.there(number):
            return
        self._next += 1
        try:
            request = self._requests.read(number)
            why = self._refusal(request)
        except (StoreError, RunFailed) as wrong:
            why = str(wrong).rstrip(".")
        if why is not None:
            self._answer(number, "refused", why)
            return
        there = len(self._crew.workers())
        self._change = Change(number, request, self._clock.now(), there)
        if request.servers not in (None, len(self._crew.servers())):
            assert request.servers is not None
            self._answer(number, "doing", "waiting for servers to take over from one another")
            self._recutting.begin(self._course.spec, self._facts, request.servers)

    def _refusal(self, request: Request) -> str | None:
        spec, size, there = self._course.spec, self._facts.parameters, len(self._crew.workers())
        if self._course.own_loop:
            return "a script takes its samples itself; write a Task to have workers come and go"
        why = None
        if request.workers is not None:
            why = refusal(spec, request.workers, self._starter.room)
        if request.servers is not None and self._facts.tables:
            why = why or "servers of sparse tables stay as many as they are"
        if request.servers is not None and why is None:
            blocks = sum(len(spans) for spans in self._starter.cut)
            why = recutting.refusal(spec, request.servers, blocks, size)
            if why is None:
                check_memory(2 * (1 + STATES[spec.optimizer or "sgd"]) * size)
        ends = self._course.told_to_stop or self._leasing.over
        if why is None and (ends or any(m.reached("trained") for m in self._crew.workers())):
            why = ENDING
        if why is None and (request.workers or 0) > there and spec.transport == "shm":
            then, now = (
                layout(spec, size, 1, len(self._facts.layers), room).copies
                for room in (request.workers or 0, there)
            )
            check_memory((then - now) * size)
        return why

    def _go_on(self, change: Change) -> None:
        if not self._recutting.done:
            return
        if not change.begun:
            self._begin(change)
        for index in sorted(change.going):
            if self._crew.worker(index).reached("trained"):
                change.going.discard(index)
                change.failed.append(f"the run came to its end before worker-{index} could go")
        if not change.coming and not change.going:
            self._finish(change)

    def _begin(self, change: Change) -> None:
        """The servers are as asked for: now the workers."""
        change.begun = True
        if change.request.servers is not None and self._recutting.seconds:
            servers = len(self._crew.servers())
            took = f"{servers} server{'s' * (servers > 1)} after {self._recutting.seconds:.2f} s"
            change.recut.append(f"the parameters are cut for {took}")
            self._tell("supervisor", "recut", took)
            self._recutting.seconds = 0.0
        there = [m for m in self._crew.workers() if not m.leaving]
        workers = change.request.workers or len(there)
        for member in there[workers:]:
            change.going.add(member.index)
            self._ask_to_leave(member, "as asked")
        taken = {m.index for m in self._crew.everybody() if not (m.left and m.gone)}
        free = [index for index in range(self._starter.room) if index not in taken]
        for index in free[: max(0, workers - len(there))]:
            change.coming.add(index)
            self._start_worker(index)
        self._leasing.resize(workers)
        if change.coming or change.going:
            roles = [f"worker-{index}" for index in change.coming | change.going]
            self._answer(change.number, "doing", f"waiting for {names(roles)}")

    def _finish(self, change: Change) -> None:
        self._change = None
        there = len(self._crew.workers())
        if change.joined or change.left:
            self._tell(
                "supervisor", "scaled", f"from {change.before} to {there} worker{'s' * (there > 1)}"
            )
        done = change.recut or change.joined or change.left or not change.failed
        said = change.said(self._since(change)) or ["there are as many already"]
        self._answer(change.number, "done" if done else "failed", *said)

    def _answer(self, number: int, state: str, *said: str) -> None:
        self._requests.answer(number, Answer(state=state, said=tuple(f"{s}." for s in said)))

    def _since(self, change: Change) -> float:
        return self._clock.now() - change.began

    # Coming.

    def _start_worker(self, index: int) -> None:
        before = self._crew.get(f"worker-{index}")
        life = before.life + 1 if before is not None else 1
        self._starter.burying.seat(self._course.spec, index)
        for server in self._crew.servers():
            server.control.send("lost", worker=index, life=life - 1)
        self._starter.worker(self._course.asked, self._course.work, index, life, born=life)
        self._tell(f"worker-{index}", "joining", "started")

    def _on_started(self, member: Member, now: int | None) -> None:
        """A worker that was started later is at it, from this round on."""
        member.at_it = True
        change = self._change
        if change is not None and member.index in change.coming:
            change.coming.discard(member.index)
            change.joined.append((member.role, now))
            where = "" if now is None else f"at round {now}, "
            self._tell(member.role, "joined", f"{where}after {self._since(change):.1f} s")

    def _gave_up(self, change: Change, member: Member) -> None:
        """A worker that was to come will not; nobody counts on it yet."""
        how = member.end_in_words()
        change.coming.discard(member.index)
        change.failed.append(f"{member.role} could not join: it {how}")
        self._tell(member.role, "left", f"{how} before it had joined; the others go on")
        member.failure = None
        self._without(member)

    # Going.

    def _on_notice(self, member: Member) -> None:
        """A worker's process was told to end: the others go on without it, or the run stops."""
        ends = self._course.told_to_stop or self._leasing.over
        if ends or member.leaving or member.reached("trained"):
            return  # it goes as it is
        others = [m for m in self._crew.workers() if m is not member and not m.leaving]
        if self._course.spec.kind.alone or not any(
            m.reached("ready") and not m.gone for m in others
        ):
            told = "its process was told to end, and nobody can go on without it: the run stops"
            self._tell(member.role, "notice", told)
            self._stopping.asked = True
            return
        self._ask_to_leave(member, "its process was told to end")

    def _ask_to_leave(self, member: Member, why: str) -> None:
        member.leaving = True
        self._why[member.index] = why
        self._regrouping.leave(member)
        member.control.send("leave")

    def welcome(self, member: Member) -> None:
        """Another life of a worker; its last one may have died over leaving."""
        if member.leaving:
            self._ask_to_leave(member, self._why[member.index])

    def does_without(self, member: Member, decision: Decision) -> bool:
        """Whether the run goes on without a role that has died, since nobody counted on it.

        What a worker that leases samples has finished only its next life can say.
        """
        change = self._change
        if member.kind == "server" and member.leaving:  # others take over from it
            member.state = "left"
            return True
        if member.kind != "worker":
            return False
        if change is not None and member.index in change.coming and decision is Decision.GIVE_UP:
            self._gave_up(change, member)
            return True
        if member.leaving and member.killed and self._course.spec.kind.samples == "slices":
            self._without(member)
            self._tell_left(member, None)
            return True
        return False

    def _on_left(self, member: Member, message: Message) -> None:
        """A worker has gone."""
        member.report |= message["report"]
        self._without(member)
        self._leasing.left(member, message["done"])
        in_rounds = self._course.spec.kind.samples == "slices"
        self._tell_left(member, message["round"] if in_rounds else None)

    def _without(self, member: Member) -> None:
        """From now on nobody waits for this worker, or counts on it."""
        member.state = "left"
        if member.gone:
            self._starter.burying.lost(self._course.spec, member)
        for server in self._crew.servers():
            server.control.send("left", worker=member.index)
        self._keeping.lost(member)
        there = self._crew.workers()
        if member.role == self._crew.leader and there:
            self._crew.leader = there[0].role
            there[0].control.send("lead")
            if self._crew.get("evaluator") is not None:  # it may have asked the one that is gone
                there[0].control.send("snapshot")

    def _tell_left(self, member: Member, now: int | None) -> None:
        why = self._why.pop(member.index, "as asked")
        where = f"after round {now}, " if now is not None else ""
        there = len(self._crew.workers())
        self._tell(member.role, "left", f"{where}{why}; {there} go on")
        change = self._change
        if change is not None and member.index in change.going:
            change.going.discard(member.index)
            change.left.append((member.role, now))
