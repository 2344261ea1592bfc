"""Who is told to stand still, and who only to wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.launch.stalls import OTHERS, Over, Sign, Stall, Stalls
from paceline.measure.process import Used
from paceline.transport import slate
from paceline.transport.slate import COMPUTE, DATA, PARKED, READY, SERVE, TRAINED, WAIT

LOOK = 0.2


class Play:
    """Looks five times a second at whatever stands on the slates."""

    def __init__(self, after: float = 5.0) -> None:
        self.stalls, self.now, self.beats = Stalls(after), 0.0, 0
        self.told: list[tuple[float, Stall]] = []
        self.over: list[tuple[float, Over]] = []
        self.used: dict[str, Used] = {}

    def show(self, seconds: float, *signs: Sign) -> list[Stall]:
        """These, for so long; what is told of them. Servers turn meanwhile."""
        before = len(self.told)
        for _ in range(round(seconds / LOOK)):
            self.now += LOOK
            self.beats += 1
            shown = [self._turned(sign) if sign.doing == SERVE else sign for sign in signs]
            shown = [replace(sign, used=self._uses(sign)) for sign in shown]
            self.over += [(self.now, over) for over in self.stalls.look(self.now, shown)]
            for stall in self.stalls.due(self.now):
                self.told.append((self.now, stall))
                self.stalls.told(stall, self.now)
        return [stall for _, stall in self.told[before:]]

    def _uses(self, sign: Sign) -> Used:
        """A sign has what its role uses in a second."""
        cpu, delay = self.used.get(sign.role, Used(0.0))
        more = sign.used or Used(0.0)
        self.used[sign.role] = Used(cpu + LOOK * more.cpu, delay + LOOK * more.delay)
        return self.used[sign.role]

    def _turned(self, sign: Sign) -> Sign:
        if sign.held:
            return sign
        return Sign(role=sign.role, doing=SERVE, waits=sign.waits, beat=self.beats)


def worker(index: int, doing: int = COMPUTE, round_: int = 7, *waits: str, state: str = "") -> Sign:
    return Sign(role=f"worker-{index}", doing=doing, round=round_, waits=waits, state=state)


def server(*waits: str, state: str = "") -> Sign:
    return Sign(role="server-0", doing=SERVE, waits=waits, state=state)


def only(stalls: Sequence[Stall]) -> Stall:
    (stall,) = stalls
    return stall


def test_it_is_told_once_and_that_it_is_over() -> None:
    play = Play()
    assert play.show(5.0, worker(0)) == []
    stall = only(play.show(5.0, worker(0)))
    assert stall.roles == ("worker-0",)
    assert stall.seconds == pytest.approx(5.0)
    assert play.over == []
    play.show(LOOK, worker(0, COMPUTE, 8))
    ((now, over),) = play.over
    assert over.roles == ("worker-0",)
    assert over.seconds == pytest.approx(10.0)
    assert now == pytest.approx(10.2)


def test_a_supervisor_that_is_always_late_blames_all_the_same() -> None:
    """Of one long pause it may have been stopped itself; where each look takes long, it was not."""
    stalls, told = Stalls(5.0), []
    for turn in range(10):
        stalls.look(1.5 * turn, [worker(0)])
        told += stalls.due(1.5 * turn)
    assert told
    once = Stalls(5.0)
    for now in (0.0, 0.2, 8.0, 8.2):
        once.look(now, [worker(0)])
        assert not once.due(now)


def test_zero_is_never() -> None:
    assert Play(0.0).show(60.0, worker(0)) == []


def test_whoever_moves_is_never_told_of() -> None:
    play = Play(1.0)
    for step in range(100):
        assert play.show(0.8, worker(0, COMPUTE, step), worker(1, DATA, step)) == []


@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param((worker(0, WAIT, 7, "worker-1"), worker(2, WAIT, 7, "worker-1")), id="shm"),
        pytest.param((worker(0, WAIT, 7, OTHERS), worker(2, WAIT, 7, OTHERS)), id="group"),
        pytest.param(
            (worker(0, WAIT, 7, "server-0"), worker(2, WAIT, 7, "server-0"), server("worker-1")),
            id="tcp",
        ),
        pytest.param((worker(0, TRAINED, 7, "worker-1"), worker(2, PARKED, 7, OTHERS)), id="end"),
    ],
)
@pytest.mark.parametrize(
    "culprit",
    [
        worker(1),
        worker(1, DATA, 7),
        worker(1, COMPUTE, 6),
        worker(1, WAIT, 6, "worker-0", state="stopped"),
        worker(1, WAIT, 7, OTHERS, state="traced"),
    ],
)
def test_one_is_told_of_and_the_others_with_it(culprit: Sign, waiting: tuple[Sign, ...]) -> None:
    play = Play()
    stall = only(play.show(20.0, *waiting, culprit))
    assert stall.roles == ("worker-1",)
    assert stall.waiting[:2] == ("worker-0", "worker-2")
    assert stall.waiting[2:] == (("server-0",) if len(waiting) > 2 else ())
    assert not stall.on


def test_a_stopped_server_is_told_of_whatever_its_gate_said_last() -> None:
    play = Play()
    waiting = worker(0, WAIT, 7, "server-0"), worker(1, WAIT, 7, "server-0")
    stall = only(play.show(20.0, *waiting, server("worker-1", state="stopped")))
    assert (stall.roles, stall.waiting) == (("server-0",), ("worker-0", "worker-1"))


def test_one_that_turns_no_more_is_told_of_too() -> None:
    play = Play()
    stuck = Sign(role="server-0", doing=slate.FOLLOW, waits=("worker-1",), beat=3)
    stall = only(play.show(20.0, worker(0, WAIT, 7, "server-0"), stuck))
    assert (stall.roles, stall.waiting) == (("server-0",), ("worker-0",))


def test_a_server_that_only_waits_is_not_told_of() -> None:
    play = Play()
    for step in range(40):
        assert play.show(1.0, worker(0, COMPUTE, step), server("worker-0")) == []


def test_whoever_rests_is_not_told_of() -> None:
    play = Play(1.0)
    for step in range(20):
        trains = worker(1, COMPUTE, step)
        assert play.show(0.8, worker(0, TRAINED, 7, "worker-1"), trains) == []
    build = Sign(role="worker-1", doing=slate.BUILD)
    stall = only(Play().show(9.0, worker(0, READY, 0, "worker-1"), build))
    assert (stall.roles, stall.waiting) == (("worker-1",), ("worker-0",))


def test_who_waits_for_one_that_goes_on_is_told_of_late_and_with_whom() -> None:
    """It is slow, and not to blame; but the other gets nowhere."""
    play = Play()
    both = worker(0, WAIT, 7, "worker-1"), worker(2, WAIT, 7, "worker-1")
    for _ in range(4):
        play.show(1.2, *both, worker(1, DATA, 7))
        play.show(1.2, *both, worker(1, COMPUTE, 7))
    assert not play.told
    stall = only(play.show(2.0, *both, worker(1, DATA, 7)))
    assert stall.roles == ("worker-0", "worker-2")
    assert [sign.role for sign in stall.on] == ["worker-1"]
    assert not stall.circle
    assert stall.seconds == pytest.approx(10.0, abs=0.3)


def test_a_slow_one_that_was_told_of_excuses_those_who_waited() -> None:
    play = Play()
    waits = worker(0, WAIT, 7, "worker-1")
    only(play.show(30.0, waits, worker(1)))
    assert play.show(4.0, waits, worker(1, WAIT, 7, "server-9")) == []
    assert play.over[0][1].waited == ("worker-0",)


def test_a_circle_is_told_of_as_one() -> None:
    play = Play()
    apart = worker(1, WAIT, 7, "server-0"), server("worker-1"), worker(0, WAIT, 7, "server-0")
    stall = only(play.show(20.0, *apart))
    assert stall.circle
    assert (stall.roles, stall.waiting) == (("worker-1", "server-0"), ("worker-0",))


def test_one_that_has_just_come_makes_no_circle() -> None:
    """The server has not said yet that its push is here."""
    play = Play()
    waits = worker(0, WAIT, 7, "server-0")
    play.show(4.8, waits, server("worker-1"), worker(1, COMPUTE, 7))
    assert play.show(1.0, waits, server("worker-1"), worker(1, WAIT, 7, "server-0")) == []


def test_all_that_wait_where_all_have_arrived_are_told_of_together() -> None:
    stall = only(Play().show(9.0, worker(0, WAIT, 7, OTHERS), worker(1, WAIT, 7, OTHERS)))
    assert (stall.roles, stall.on) == (("worker-0", "worker-1"), ())


def test_those_that_do_the_same_are_told_of_together() -> None:
    play = Play()
    play.show(1.0, worker(10))
    stall = only(play.show(9.0, worker(10), worker(2), worker(1, DATA, 8, state="stopped"))[:1])
    assert stall.roles == ("worker-2", "worker-10")
    assert [stall.roles for _, stall in play.told][1:] == [("worker-1",)]


def test_long_steps_are_told_of_once() -> None:
    play = Play()
    for step in range(10):
        play.show(20.0, worker(0, COMPUTE, step))
    assert [now for now, _ in play.told] == [pytest.approx(5.2)]
    only(play.show(50.0, worker(0, COMPUTE, 11)))  # more than twice as long as ever


def test_one_long_step_excuses_no_other() -> None:
    play = Play()
    only(play.show(20.0, worker(0, COMPUTE, 1)))
    for step in range(2, 8):
        play.show(0.4, worker(0, COMPUTE, step))
    only(play.show(6.0, worker(0, COMPUTE, 9)))


BUSY = [Used(1.0), Used(0.1, 0.9), Used(2.0, 5.0)]


@pytest.mark.parametrize("used", BUSY)
def test_who_computes_is_told_of_late(used: Used) -> None:
    """Also if others have its core, or it has several."""
    play, busy = Play(), replace(worker(0), used=used)
    waits = worker(1, WAIT, 7, "worker-0"), worker(2, WAIT, 7, "server-0"), server("worker-0")
    assert play.show(28.0, busy, *waits) == []
    stall = only(play.show(80.0, busy, *waits))
    assert (stall.roles, stall.waiting) == (("worker-0",), ("worker-1", "worker-2", "server-0"))
    assert stall.seconds == pytest.approx(30.0, abs=0.3)
    cores = play.stalls.cores("worker-0", play.now)
    assert cores == pytest.approx(used.cpu)


@pytest.mark.parametrize("used", BUSY)
def test_from_when_it_does_nothing_its_seconds_count(used: Used) -> None:
    play = Play()
    assert play.show(12.0, replace(worker(0), used=used)) == []
    assert play.show(4.6, worker(0)) == []
    assert only(play.show(1.0, worker(0))).seconds == pytest.approx(17.0, abs=0.5)


def test_who_waited_for_work_is_not_told_of_when_it_is_done() -> None:
    play, waits = Play(), worker(0, WAIT, 7, "worker-1")
    for doing in (DATA, COMPUTE, slate.EXCHANGE):
        assert play.show(6.0, waits, replace(worker(1, doing), used=Used(1.0))) == []
    assert play.show(9.0, waits, worker(1, DATA)) == []
    assert only(play.show(2.0, waits, worker(1, DATA))).roles == ("worker-0",)


def test_what_takes_long_by_nature_may() -> None:
    for doing in (slate.COMPILE, slate.RESTORE):
        assert Play().show(29.0, worker(0, doing)) == []
        only(Play().show(31.0, worker(0, doing)))


def test_a_stop_is_told_of_each_time() -> None:
    play = Play()
    for step in range(3):
        only(play.show(9.0, worker(0, COMPUTE, step, state="stopped")))


def test_who_is_gone_is_not_told_to_go_on() -> None:
    play = Play()
    only(play.show(6.0, worker(0), worker(1, WAIT, 7, "worker-0")))
    play.show(1.0, worker(1, COMPUTE, 8))
    assert play.over == []
    only(play.show(6.0, Sign(role="worker-0", doing=COMPUTE, life=1), worker(1, TRAINED, 9)))


def test_seconds_in_which_nobody_looked_are_nobodys_fault() -> None:
    play = Play()
    play.show(3.0, worker(0))
    play.now += 60.0
    assert play.show(1.8, worker(0)) == []
    only(play.show(1.0, worker(0)))


DOINGS = st.sampled_from([COMPUTE, DATA, WAIT, PARKED, SERVE, TRAINED, READY])
ROLES = st.sampled_from(["worker-0", "worker-1", "worker-2", "server-0", "gone-1", OTHERS])
SIGNS = st.builds(
    Sign,
    role=st.just("?"),
    doing=DOINGS,
    round=st.integers(0, 2),
    waits=st.lists(ROLES, max_size=2).map(tuple),
    state=st.sampled_from(["", "", "stopped", "asleep"]),
)


@given(st.lists(st.tuples(*[SIGNS] * 4), max_size=12), st.floats(0.1, 2.0))
def test_whatever_stands_on_slates_every_role_is_told_of_once_at_a_time(
    scenes: list[tuple[Sign, ...]], after: float
) -> None:
    names = "worker-0", "worker-1", "worker-2", "server-0"
    stalls, told, now = Stalls(after), dict[str, Stall](), 0.0
    for scene in scenes:
        now += 0.7
        signs = [
            Sign(role=name, doing=s.doing, round=s.round, waits=s.waits, state=s.state)
            for name, s in zip(names, scene, strict=True)
        ]
        for over in stalls.look(now, signs):
            for role in over.roles:
                told.pop(role, None)
        for stall in stalls.due(now):
            assert stall.seconds >= after
            assert not set(stall.roles) & set(stall.waiting)
            stalls.told(stall, now)
            told |= dict.fromkeys(stall.roles, stall)
        known = {role for stall in stalls.due(now) for role in stall.roles}
        assert not known, "told, and due again"
