"""Who stands still, and who only waits for it. Pure: asked, it says what to tell; `watching.py`
looks and tells.

    a sign of each role ─► since when is it the same? ─► long enough? ─► whose fault? ─► one stall

Of roles that stand still, most wait for others. Follow whom each waits for:

    worker-0 ─► server-0 ─► worker-1    worker-1 waits for nobody: the stall is its own, and the
    worker-2 ─► server-0 ──┘            others are told with it, as those who wait
    worker-0 ─► worker-1                which goes on: told of worker-0, and after twice the time,
                                        since worker-1 may yet turn out to stand still
    worker-1 ◄─► server-0               a circle: told of all in it

Work may take long and be honest work:

    still = seconds on the same spot − those in which its process ran, or had no core to run on

is what counts, and of who waits also not the seconds in which the one it waits for ran. So who
compiles or loads for ten seconds is not told of; who computes without an end is, later. What took a
role long the last times it did the same is no stall before it takes twice that: steps of twenty
seconds are told of once, not at each step.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from paceline.measure.process import Used
from paceline.transport import slate

OTHERS = "others"  # in `waits`: whoever has not arrived in the round
SAME = 5  # how many of the last times count
LONG = 6  # times as long: what takes long by nature, and whoever computes, may stay on one spot
WAITED = 0.4  # seconds from which on a role that waits for another is told to
UNSEEN = 1.0  # seconds without a look from which on nobody is blamed for them
# Of these it is others who must do something; who does them rests, and is never told of itself.
RESTS = (slate.READY, slate.TRAINED, slate.SNAPSHOT)
TURNS = (slate.SERVE, slate.FOLLOW)  # who does these waits for others, as long as it beats
NATURALLY = (slate.IMPORT, slate.BORN, slate.COMPILE, slate.RESTORE)  # a cold disk is no stall
ARRIVED = (slate.WAIT, slate.PARKED)  # where all wait for each other, these are there


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """How one role stands at one look. `waits` are the roles it waits for, by its own word or by
    that of who knows. `state` is the kernel's word, if it is stopped, traced by a debugger, or
    asleep in the kernel, and `held_for` since how many seconds it is stopped. `used` is what its
    process has used so far, known of those that may stand still.
    """

    role: str
    doing: int
    round: int = 0
    beat: int = 0
    life: int = 0
    waits: tuple[str, ...] = ()
    state: str = ""
    held_for: float = 0.0
    used: Used | None = None

    @property
    def mark(self) -> tuple[object, ...]:
        """As long as this is the same, the role has not moved."""
        waits = () if self.doing in TURNS else self.waits
        return self.doing, self.round, self.beat, self.life, waits

    @property
    def held(self) -> bool:
        """Whether it cannot go on, whatever it waits for."""
        return self.state in ("stopped", "traced")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Stand still: `roles`, for so many seconds. Behind them wait `waiting`.

    `on` is whom the roles wait for: none, one that goes on, or each other.
    """

    roles: tuple[str, ...]
    sign: Sign  # of the first of them
    seconds: float
    waiting: tuple[str, ...] = ()
    on: tuple[Sign, ...] = ()

    @property
    def circle(self) -> bool:
        return bool(self.on) and {sign.role for sign in self.on} <= set(self.roles)


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """They go on, after so many seconds in all."""

    roles: tuple[str, ...]
    seconds: float
    waited: tuple[str, ...]


@dataclass(slots=True)
class _Told:
    """A stall that was told, and lasts."""

    roles: tuple[str, ...]
    since: float
    left: set[str]  # of the roles, those that have not moved
    waited: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Work:
    """What a role on one spot did there: from when on it was looked at, and what it had used."""

    when: float
    first: Used
    last: Used
    seconds: float = 0.0  # in which it ran, or could have


class Stalls:
    """`after` so many seconds; 0 is never."""

    def __init__(self, after: float) -> None:
        self._after = after
        self._signs: dict[str, Sign] = {}
        self._since: dict[str, float] = {}
        self._took: dict[tuple[str, int], deque[float]] = defaultdict(lambda: deque(maxlen=SAME))
        self._work: dict[str, _Work] = {}
        self._excused: dict[str, float] = {}  # seconds in which whom it waited for worked
        self._told: list[_Told] = []
        self._looked: float | None = None
        self._slow = False  # whether the last look came late

    # Looking.

    def look(self, now: float, signs: Iterable[Sign]) -> list[Over]:
        """Take note of how all stand now; what is over of what was told."""
        seen = now - self._looked if self._looked is not None else 0.0
        stopped, before, self._slow = seen > UNSEEN, self._slow, seen > UNSEEN
        if stopped and not before:  # we were stopped ourselves; twice in a row it is our pace
            for role in self._since:
                self._since[role] += seen
            seen = 0.0
        self._looked = now
        found = {sign.role: sign for sign in signs}
        moved = {
            role: now - self._since[role]
            for role, before in self._signs.items()
            if role in found and found[role].mark != before.mark
        }
        for role, seconds in moved.items():
            if not self._signs[role].held:
                self._took[role, self._signs[role].doing].append(seconds)
            self._excuse(role)
        gone = self._signs.keys() - found.keys()
        for role in (*moved, *gone):
            del self._since[role]
            self._work.pop(role, None)
            self._excused.pop(role, None)
        for role, sign in found.items():
            self._since.setdefault(role, now)
            self._note(sign, now, seen)
        self._signs = found
        return self._over(now, moved, gone)

    def _note(self, sign: Sign, now: float, seen: float) -> None:
        """Count what a role does on its spot. Several threads do not make a second longer."""
        if sign.used is None:
            return
        work = self._work.setdefault(sign.role, _Work(now, sign.used, sign.used))
        work.seconds += min(seen, sum(sign.used) - sum(work.last))
        work.last = sign.used

    def _excuse(self, role: str) -> None:
        """It goes on after some work; who waited for it, waited for that."""
        if (worked := self._worked(role)) > WAITED:
            for other in self.waiting_for((role,)):
                self._excused[other] = self._excused.get(other, 0.0) + worked

    def _worked(self, role: str) -> float:
        return self._work[role].seconds if role in self._work else 0.0

    def _over(self, now: float, moved: Mapping[str, float], gone: Iterable[str]) -> list[Over]:
        """Of those that are gone nothing is told here: their end is."""
        over = []
        for told in self._told:
            told.left.difference_update(moved)
            if not told.left:
                waited = tuple(role for role in told.waited if role not in told.roles)
                over.append(Over(roles=told.roles, seconds=now - told.since, waited=waited))
                # Who waited was told of, and may take as long again to go on.
                self._since |= dict.fromkeys(self._since.keys() & waited, now)
                continue
            told.left.difference_update(gone)
            told.waited |= dict.fromkeys(self.waiting_for(told.left))
        self._told = [told for told in self._told if told.left]
        return over

    def same(self, sign: Sign) -> bool:
        """Whether the role is where it was at the last look."""
        before = self._signs.get(sign.role)
        return before is not None and before.mark == sign.mark

    def idle(self, role: str, now: float) -> float:
        """For how long a role has been on the same spot."""
        return now - self._since.get(role, now)

    def cores(self, role: str, now: float) -> float | None:
        """How many it has used there, if that was looked at."""
        work = self._work.get(role)
        if work is None or now <= work.when:
            return None
        return (work.last.cpu - work.first.cpu) / (now - work.when)

    # Deciding.

    def due(self, now: float) -> list[Stall]:
        """What is to be told now. It is asked for again until it is `told`."""
        if not self._after:
            return []
        known = {role for told in self._told for role in told.left}
        late = [sign for sign in self._signs.values() if self._late(sign, now)]
        own = [sign for sign in late if not self._ahead(sign) and sign.role not in known]
        found = [self._of(same, now) for same in self._alike(own, now, known)]
        named = known.union(*(stall.roles for stall in found))
        for sign in late:
            if sign.role in named or not self._ahead(sign):
                continue
            ends = self._ends(sign)
            if any(role in named for end in ends for role in end):
                continue
            if (stall := self._behind(sign, ends, now)) is not None:
                found.append(stall)
                named.update(stall.roles)
        return found

    def told(self, stall: Stall, now: float) -> None:
        """It was told, and is not told again while it lasts."""
        since = min((self._since[role] for role in stall.roles if role in self._since), default=now)
        waited = dict.fromkeys(stall.waiting)
        self._told.append(_Told(stall.roles, since, set(stall.roles), waited))

    def waiting_for(self, roles: Iterable[str]) -> tuple[str, ...]:
        """Who waits for one of these, or for one that does: workers first."""
        wanted, now = set(roles), self._looked or 0.0
        waiting = (
            sign
            for sign in self._signs.values()
            if sign.role not in wanted
            and (sign.doing in TURNS or self.idle(sign.role, now) >= WAITED)
        )
        found = [s.role for s in waiting if any(wanted.intersection(e) for e in self._ends(s))]
        return tuple(sorted(found, key=in_order))

    def _late(self, sign: Sign, now: float, part: float = 1.0) -> bool:
        """Whether it has stood still for long enough, or for a part of that."""
        if sign.doing in RESTS and not sign.held:
            return False
        if sign.held_for:  # it may have rested before that
            return sign.held_for >= part * self._after
        still, patience = self._still(sign.role, now), self._patience(sign)
        endless = max(LONG * self._after, patience)
        return still >= part * patience or self.idle(sign.role, now) >= part * endless

    def _still(self, role: str, now: float) -> float:
        """For how long a role has been on one spot without work of its own, or of whom it waits
        for."""
        return self.idle(role, now) - self._worked(role) - self._excused.get(role, 0.0)

    def _patience(self, sign: Sign) -> float:
        """How long it may stand still: as told, or twice what it usually takes to do this."""
        if sign.doing in NATURALLY and not sign.held:
            return LONG * self._after
        took = sorted(self._took[sign.role, sign.doing])
        if sign.held or not took:
            return self._after
        return max(self._after, 2 * took[(len(took) - 1) // 2])

    def _of(self, same: Sequence[Sign], now: float) -> Stall:
        roles = tuple(sign.role for sign in same)
        return Stall(
            roles=roles,
            sign=same[0],
            seconds=max(self.idle(role, now) for role in roles),
            waiting=self.waiting_for(roles),
        )

    def _alike(self, own: Sequence[Sign], now: float, known: set[str]) -> list[list[Sign]]:
        """Those that do the same are told together, and with them who soon would be."""
        found: dict[tuple[object, ...], list[Sign]] = {}
        for sign in own:
            found.setdefault((sign.doing, sign.state), [])
        for sign in self._signs.values():
            same = found.get((sign.doing, sign.state))
            nearly = self._late(sign, now, 0.5)
            if same is not None and nearly and not self._ahead(sign) and sign.role not in known:
                same.append(sign)
        return [sorted(same, key=lambda sign: in_order(sign.role)) for same in found.values()]

    def _behind(self, sign: Sign, ends: Sequence[frozenset[str]], now: float) -> Stall | None:
        """Of one that waits for others, none of whom stands still for long."""
        seconds = self.idle(sign.role, now)
        circle = next((end for end in ends if len(end) > 1), None)
        if circle is not None:
            roles = tuple(sorted(circle, key=in_order))
            on = tuple(self._signs[role] for role in roles)
            if not all(other.doing in TURNS or self._late(other, now) for other in on):
                return None  # one of them has just come to it
            waiting = self.waiting_for(roles)
            return Stall(roles=roles, sign=on[0], seconds=seconds, waiting=waiting, on=on)
        on = tuple(self._signs[role] for end in ends for role in end)
        waited = self._still(sign.role, now) - max(self._worked(other.role) for other in on)
        soon = waited < 2 * self._patience(sign) and seconds < 2 * LONG * self._after
        if soon or any(other.doing in RESTS for other in on):
            return None
        alike = [
            other.role
            for other in self._signs.values()
            if self._late(other, now) and self._ahead(other) and self._ends(other) == ends
        ]
        return Stall(roles=tuple(sorted(alike, key=in_order)), sign=sign, seconds=seconds, on=on)

    # Following.

    def _ahead(self, sign: Sign) -> tuple[str, ...]:
        """Whom it waits for, of those there are."""
        turned = self.idle(sign.role, self._looked or 0.0) < UNSEEN
        if sign.held or (sign.doing in TURNS and not turned):  # what it said last is out of date
            return ()
        named = [role for role in sign.waits if role in self._signs and role != sign.role]
        if OTHERS in sign.waits:
            named += self._missing(sign)
        return tuple(named)

    def _missing(self, sign: Sign) -> list[str]:
        """Workers that have not arrived where this role waits for all of them."""
        return [
            other.role
            for other in self._signs.values()
            if other.role != sign.role
            and _trains(other)
            and (other.held or other.doing not in ARRIVED or other.round < sign.round)
        ]

    def _ends(self, sign: Sign) -> list[frozenset[str]]:
        """Where it leads to follow whom this role waits for: roles that wait for nobody, each by
        itself, and circles of those that wait for each other."""
        ends: list[frozenset[str]] = []
        seen: set[str] = set()

        def follow(role: str, path: tuple[str, ...]) -> None:
            if role in path:
                ends.append(frozenset(path[path.index(role) :]))
                return
            if role in seen:
                return
            seen.add(role)
            ahead = self._ahead(self._signs[role])
            if not ahead and path:
                ends.append(frozenset((role,)))
            for other in ahead:
                follow(other, (*path, role))

        follow(sign.role, ())
        return ends


def _trains(sign: Sign) -> bool:
    """Whether it is a worker that others may wait for in a round."""
    return sign.role.startswith("worker-") and sign.doing not in (slate.TRAINED, slate.ENDING)


def in_order(role: str) -> tuple[bool, str, int]:
    """Workers first, and worker-2 before worker-10."""
    kind, _, number = role.partition("-")
    return kind != "worker", kind, int(number or 0)
