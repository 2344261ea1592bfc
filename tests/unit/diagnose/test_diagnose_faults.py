"""How long each fault of a run took to get over, from events and ends of steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.diagnose.faults import Ends, Fault, faults
from paceline.types import Event


def event(time: float, role: str, kind: str, detail: str = "") -> Event:
    return Event(time=time, role=role, kind=kind, detail=detail)


def stepped(gap: tuple[float, float] = (0, 0), until: float = 10.0) -> np.ndarray:
    """Steps of a tenth of a second, none of which ends within the gap."""
    ends = np.arange(0.1, until, 0.1)
    return ends[(ends <= gap[0]) | (ends >= gap[1])]


KILLED = [
    event(3.0, "worker-1", "injected", "kill:worker-1@3s"),
    event(3.01, "worker-1", "died", "was killed by signal 9"),
    event(3.2, "worker-1", "back"),
]
TWO: Ends = {"worker-0": stepped(), "worker-1": stepped((3.0, 3.45))}


def one(events: list[Event], ends: Ends, *, in_rounds: bool = False) -> Fault:
    (fault,) = faults(events, ends, in_rounds=in_rounds)
    return fault


def test_no_events_no_faults() -> None:
    assert faults([], TWO, in_rounds=True) == []
    quiet = [event(1, "supervisor", "stopping"), event(2, "worker-0", "target")]
    assert faults(quiet, TWO, in_rounds=True) == []


def test_a_kill_is_one_fault_over_with_its_next_step() -> None:
    fault = one(KILLED, TWO)
    assert (fault.what, fault.role, fault.time, fault.injected) == ("killed", "worker-1", 3.0, True)
    assert fault.seconds == pytest.approx(0.5)
    alone = one(KILLED[1:], TWO)
    assert (alone.what, alone.injected, alone.time) == ("killed", False, 3.01)


def test_in_rounds_it_is_over_when_all_take_steps_again() -> None:
    ends = {"worker-0": stepped((3.0, 4.05)), "worker-1": TWO["worker-1"]}
    assert one(KILLED, ends).seconds == pytest.approx(0.5)
    assert one(KILLED, ends, in_rounds=True).seconds == pytest.approx(1.1)


def test_whoever_does_not_come_back_never_recovered() -> None:
    killed = [*KILLED[:1], event(3.3, "supervisor", "failed")]
    still_under_way = {"worker-0": stepped(until=3.2), "worker-1": stepped(until=3.0)}
    assert one(killed, still_under_way, in_rounds=True).seconds is None
    server = [event(3.0, "server-0", "injected", "kill:server-0@3s")]
    assert one(server, still_under_way).seconds is None


def test_with_nothing_left_to_do_it_is_over_when_it_is_back() -> None:
    ends = {"worker-0": stepped(until=2), "worker-1": stepped(until=2)}
    assert one(KILLED, ends).seconds == pytest.approx(0.2)
    assert one(KILLED, ends, in_rounds=True).seconds == pytest.approx(0.2)


def test_a_server_is_over_when_workers_take_steps_after_it_is_back() -> None:
    events = [event(3.0, "server-0", "died"), event(3.5, "server-0", "back")]
    ends = {"worker-0": stepped((3.1, 3.65)), "worker-1": stepped((3.0, 3.95))}
    assert one(events, ends).seconds == pytest.approx(1.0)


def test_a_stop_that_went_on_in_time() -> None:
    events = [
        event(3.0, "worker-1", "injected", "stop:worker-1@3s+1s"),
        event(3.4, "worker-1", "frozen"),
        event(4.4, "worker-1", "thawed"),
    ]
    ends = {"worker-0": stepped(), "worker-1": stepped((3.0, 4.05))}
    fault = one(events, ends)
    assert (fault.what, fault.seconds) == ("stopped", pytest.approx(1.1))
    told = [event(3.9, "worker-1", "stalled"), event(4.5, "worker-1", "moving")]
    assert one([*events[:2], *told[:1], *events[2:], *told[1:]], ends) == fault
    by_hand = one(events[1:], ends)
    assert (by_hand.what, by_hand.seconds) == ("frozen", pytest.approx(0.7))


def test_a_stop_that_ended_in_a_death() -> None:
    events = [
        event(3.0, "worker-1", "injected", "stop:worker-1@3s"),
        event(3.4, "worker-1", "frozen"),
        event(5.0, "worker-1", "died"),
        event(5.1, "worker-1", "back"),
    ]
    fault = one(events, {"worker-1": stepped((3.0, 5.15))})
    assert (fault.what, fault.seconds) == ("stopped, then killed", pytest.approx(2.2))


def test_a_death_long_after_another_fault_is_its_own() -> None:
    short = event(1.0, "worker-1", "injected", "stop:worker-1@1s+0.1s")  # too short to be seen
    found = faults([short, *KILLED[1:]], TWO, in_rounds=False)
    assert [fault.what for fault in found] == ["stopped", "killed"]
    assert [fault.time for fault in found] == [1.0, 3.01]


def test_a_limit_has_no_end() -> None:
    fault = one([event(0.1, "server-0", "injected", "limit:server-0=100mbit")], TWO)
    assert (fault.what, fault.seconds) == ("limited to 100 Mbit/s", None)


def test_slowness_and_a_full_disk_last_as_long_as_they_were_asked_to() -> None:
    for role, text in (("worker-1", "slow:worker-1x1.5@3s"), ("disk", "disk-full@3s")):
        assert one([event(3.0, role, "injected", text + "+2s")], TWO).seconds == pytest.approx(2.1)
        assert one([event(3.0, role, "injected", text)], TWO).seconds is None


def test_what_another_version_injected_is_told_as_it_stands() -> None:
    fault = one([event(3.0, "worker-1", "injected", "drown:worker-1@3s")], TWO)
    assert fault.what == "drown:worker-1@3s"


@given(
    st.lists(
        st.tuples(
            st.floats(0, 10),
            st.sampled_from(["worker-0", "worker-1", "server-0", "supervisor"]),
            st.sampled_from(
                ["injected", "died", "back", "frozen", "thawed", "stalled", "moving", "failed"]
            ),
            st.sampled_from(["kill:worker-0@1s", "stop:worker-1@1s", "slow:worker-0x2@0s+1s", "?"]),
        ),
        max_size=12,
    ),
    st.booleans(),
)
def test_any_events_make_a_timeline(
    told: list[tuple[float, str, str, str]], in_rounds: bool
) -> None:
    events = [event(*each) for each in sorted(told)]
    found = faults(events, TWO, in_rounds=in_rounds)
    assert [fault.time for fault in found] == sorted(fault.time for fault in found)
    assert all(fault.seconds is None or fault.seconds >= 0 for fault in found)
    injected = [each for each in events if each.kind == "injected"]
    assert sum(fault.injected for fault in found) == len(injected)


def test_a_connection_that_is_cut_is_over_when_it_takes_steps_again() -> None:
    ends = {"worker-0": stepped(), "worker-1": stepped((3.0, 5.25))}
    cut = [
        event(3.0, "worker-1", "injected", "cut:worker-1-server-0@3s+2s"),
        event(4.0, "worker-1", "absent"),
        event(5.2, "worker-1", "back"),
    ]
    fault = one(cut, ends)
    assert (fault.what, fault.injected) == ("cut off from server-0", True)
    assert fault.seconds == pytest.approx(2.3)
    by_itself = one(cut[1:], ends)
    assert (by_itself.what, by_itself.injected, by_itself.time) == ("not heard", False, 4.0)


COMES = [event(2.0, "worker-2", "joining"), event(2.5, "worker-2", "joined", "at round 20")]
GOES = [event(6.0, "worker-2", "left", "as asked; 2 go on")]
LATER: Ends = {
    "worker-0": stepped((6.0, 6.25)),
    "worker-1": stepped(),
    "worker-2": stepped(until=6.0)[25:],
}


@pytest.mark.parametrize("in_rounds", [False, True])
def test_whoever_comes_is_there_with_its_first_step_and_is_done_without_when_it_goes(
    in_rounds: bool,
) -> None:
    came, went = faults([*COMES, *GOES], LATER, in_rounds=in_rounds)
    assert (came.what, came.role, came.time) == ("joined", "worker-2", 2.0)
    assert came.seconds == pytest.approx(0.6)
    assert (went.what, went.role, went.time) == ("left", "worker-2", 6.0)
    assert went.seconds == pytest.approx(0.3)


def test_a_fault_does_not_last_until_somebody_comes() -> None:
    killed = [event(0.5, "worker-1", "died"), event(0.7, "worker-1", "back")]
    ends = LATER | {"worker-1": stepped((0.5, 0.95))}
    fault = faults([*killed, *COMES, *GOES], ends, in_rounds=True)[0]
    assert (fault.what, fault.role) == ("killed", "worker-1")
    assert fault.seconds == pytest.approx(0.5)


def test_one_that_could_not_join_never_did() -> None:
    lost = [event(2.0, "worker-2", "joining"), event(2.4, "worker-2", "left", "was killed")]
    fault = one(lost, TWO, in_rounds=True)
    assert (fault.what, fault.seconds) == ("could not join", None)
