"""The supervisor's eye on roles that stand still: looks, asks for stacks, tells, ends the frozen.

    slates, the kernel's word, servers' gates ─► signs ─► stalls.py ─due─► ask for a stack ─► tell

What a role writes on its slate, and what the kernel says of its process, is read without its help:
a role that is stopped cannot answer. Of roles that go on, nothing is asked but their slates.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from paceline.launch import stall_words
from paceline.launch.beat import Beat
from paceline.launch.course import Course
from paceline.launch.crew import Crew, Member
from paceline.launch.leasing import Leasing
from paceline.launch.nursery import Nursery
from paceline.launch.stalls import OTHERS, Sign, Stall, Stalls
from paceline.measure import stack
from paceline.measure.clock import Clock
from paceline.measure.process import Processes
from paceline.store.folder import RunFolder
from paceline.transport import slate

LOOK = 0.25  # seconds between looks
SOON = 0.05  # while somebody was asked for a stack
ANSWER = 0.1  # seconds in which a role writes its stack
SAMPLED = 4  # roles of one stall whose stacks are taken
MOST = 100  # of a run's stalls have stacks
NURSERY = "nursery"


@dataclass(slots=True)
class _Asked:
    """Roles that were asked for their stacks, and when."""

    when: float
    roles: set[str] = field(default_factory=set)


class Watch:
    """`tell` takes a role, what kind of event it is, and the detail. `awaited` says for whom the
    supervisor itself waits just now."""

    def __init__(
        self,
        course: Course,
        crew: Crew,
        folder: RunFolder,
        nursery: Nursery,
        leasing: Leasing,
        processes: Processes,
        clock: Clock,
        tell: Callable[[str, str, str], None],
    ) -> None:
        self._course = course
        self._crew = crew
        self._folder = folder
        self._nursery = nursery
        self._leasing = leasing
        self._processes = processes
        self._clock = clock
        self._tell = tell
        self._stalls = Stalls(course.asked.stall_after)
        self._beat = Beat(min(LOOK, course.asked.stall_after / 4 or LOOK))
        self._held = math.inf  # when one that is stopped will have been so for long enough
        self._asked: dict[str, _Asked] = {}  # by the first role of a stall
        self._left = MOST
        self.awaited: Callable[[], list[str]] = list

    def due(self) -> float:
        """Seconds until the next look."""
        if self._asked:
            return SOON
        return max(0.0, min(self._beat.due(), self._held - self._clock.now()))

    def turn(self) -> None:
        """Look, if it is time to; tell what is due, and what is over."""
        now = self._clock.now()
        if self._beat.here() or now >= self._held:
            self._look(now)
        elif not self._asked:
            return
        due = self._stalls.due(now)
        for stall in due:
            self._heed(stall, now)
        first = {stall.roles[0] for stall in due}
        self._asked = {role: asked for role, asked in self._asked.items() if role in first}

    # Looking.

    def _look(self, now: float) -> None:
        members = self._crew.left()
        signs = [self._sign(member, now) for member in members]
        signs.append(self._nurserys(members))
        left = (self._course.asked.stall_after - sign.held_for for sign in signs if sign.held_for)
        self._held = now + min((seconds for seconds in left if seconds > 0), default=math.inf)
        for over in self._stalls.look(now, signs):
            self._tell(over.roles[0], "moving", stall_words.over(over))
        for member, sign in zip(members, signs, strict=False):
            if sign.state == "stopped":
                self._end_if_frozen(member, sign, now)

    def _nurserys(self, members: Sequence[Member]) -> Sign:
        """It has something to do as long as there are roles without a process."""
        if all(member.pid for member in members):
            return Sign(role=NURSERY, doing=slate.READY)
        return Sign(
            role=NURSERY, doing=slate.IMPORT, state=self._processes.state(self._nursery.pid)
        )

    def _sign(self, member: Member, now: float) -> Sign:
        if not member.pid:
            return Sign(role=member.role, doing=slate.BORN, life=member.life, waits=(NURSERY,))
        at, round_, beat = member.slate.read()
        doing = slate.doing(at)
        if doing == slate.SERVE:
            round_ = member.awaits[0]
        sign = Sign(
            role=member.role,
            doing=doing,
            round=round_,
            beat=beat,
            life=member.life,
            waits=self._waits(member, at),
        )
        if member.frozen_at is None and not self._stalls.same(sign):
            return sign  # it moved since the last look: the kernel need not be asked
        state = self._state(member, now)
        return replace(
            sign,
            state=state,
            held_for=now - member.frozen_at if member.frozen_at is not None else 0.0,
            used=self._processes.used(member.pid),
        )

    def _state(self, member: Member, now: float) -> str:
        """The kernel's word on a process that may stand still."""
        state = self._processes.state(member.pid)
        if state == "stopped" and member.frozen_at is None:
            member.frozen_at = now
            self._tell(member.role, "frozen", "its process was stopped")
        elif state != "stopped" and member.frozen_at is not None:
            self._tell(member.role, "thawed", f"after {now - member.frozen_at:.1f} s")
            member.frozen_at = None
        return state

    def _waits(self, member: Member, at: int) -> tuple[str, ...]:
        """For whom a role waits: by its slate, by a server's word, or by our own."""
        waits: Iterable[str] = ()
        match slate.doing(at):
            case slate.READY | slate.TRAINED:
                waits = (role for role in self.awaited() if role != member.role)
            case slate.SNAPSHOT:
                waits = (self._crew.leader,)
            case slate.DATA:
                waits = (other.role for other in self._leasing.awaited(member))
            case slate.PARKED:
                waits = (OTHERS,)
            case slate.WAIT:
                waits = self._named(member, at)
            case slate.SERVE:
                waits = (r for peer in member.awaits[1] for r in self._named(member, peer))
        return tuple(waits)

    def _named(self, member: Member, at: int) -> tuple[str, ...]:
        kind, which = slate.peer(at)
        if kind == slate.OTHERS:
            return (OTHERS,)
        if kind == slate.STANDBY:
            return (f"standby-{member.index}",)
        if kind == slate.PROCESS:
            return tuple(other.role for other in self._crew.left() if other.pid == which)
        return (f"{slate.KINDS[kind]}-{which}",) if kind in slate.KINDS else ()

    def _end_if_frozen(self, member: Member, sign: Sign, now: float) -> None:
        """A role that is stopped for longer than its lease is ended: it might wake at any time and
        go on writing where others are by then."""
        lease = self._course.spec.lease
        if not lease or member.frozen_at is None or now - member.frozen_at < lease:
            return
        waiting = self._stalls.waiting_for([member.role])
        member.meanwhile = stall_words.meanwhile(sign, waiting, self._rounds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(member.pid, signal.SIGKILL)

    # Telling.

    @property
    def _rounds(self) -> str:
        """What a step is called."""
        kind = self._course.spec.kind
        in_rounds = kind.samples == "slices" and kind.shared and kind.name != "local-sgd"
        return "round" if in_rounds else "step"

    def _heed(self, stall: Stall, now: float) -> None:
        """Ask for stacks first, then tell."""
        asked = self._asked.get(stall.roles[0])
        if asked is None:
            self._asked[stall.roles[0]] = self._ask(stall, now)
        elif now - asked.when >= ANSWER or not asked.roles:
            self._stalls.told(stall, now)
            first = stall.roles[0]
            sentence = stall_words.told(stall, self._rounds, self._stalls.cores(first, now))
            at, kept = self._stacks(stall, asked, f"{first} {sentence}", now)
            self._tell(first, "stalled", "; ".join(filter(None, (sentence, at, kept))))

    def _ask(self, stall: Stall, now: float) -> _Asked:
        asked = _Asked(now)
        for member in self._sampled(stall):
            member.slate.wipe()
            able = not self._processes.state(member.pid)  # the stopped would answer much later
            if able and stack.ask(member.pid):
                asked.roles.add(member.role)
        return asked

    def _sampled(self, stall: Stall) -> list[Member]:
        """Whose stacks say most: of those it depends on, then of those who wait for them."""
        roles = dict.fromkeys((*(sign.role for sign in stall.on), *stall.roles))
        found = [self._crew.get(role) for role in roles]
        return [m for m in found if m is not None and m.pid and not m.gone][:SAMPLED]

    def _stacks(self, stall: Stall, asked: _Asked, head: str, now: float) -> tuple[str, str]:
        """Where the first of them is, in words, and in which files all of it stands."""
        at, kept = "", []
        for member in self._sampled(stall) if self._left > 0 else ():
            written = member.slate.written() if member.role in asked.roles else ""
            if not at and written:
                at = _place(written, stall)
            about = (head, written or "It could not tell its stack.", stack.kernel_view(member.pid))
            kept.append(self._folder.write_stack(member.role, now, "\n\n".join(about)))
            self._left -= 1
        return at, f"see {' and '.join(kept)}" if kept else ""


def _place(written: str, stall: Stall) -> str:
    """`at load (mine.py, line 12)`: of who makes batches, where one is waited for."""
    makes = "data/prefetch.py" if stall.sign.doing == slate.DATA else ""
    frames = stack.innermost(written, makes)
    return f"at {', from '.join(map(str, frames))}" if frames else ""
