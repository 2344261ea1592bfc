"""When injected faults are due: each once, at its moment, for as long as it lasts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paceline.launch.inject import Schedule
from paceline.spec.inject import injection

TEXTS = [
    *("kill:worker-0@1s", "kill:worker-1@step=5", "kill:server-0@step=5", "kill:server-0@2.5s"),
    *("stop:worker-1@1s+2s", "stop:evaluator@3s", "stop:worker-0@step=3+1s"),
    *("slow:worker-0x2", "slow:worker-0x1.5@1s+1s", "disk-full@2s", "disk-full@0s+1s"),
]
LIVING = ("worker-0", "worker-1", "server-0", "evaluator")


def schedule(*texts: str) -> Schedule:
    return Schedule([injection(text) for text in texts])


def due(plan: Schedule, now: float, **steps: int) -> list[str]:
    there = {role.replace("_", "-"): count for role, count in steps.items()}
    acts = plan.due(now, there)
    return [("begin " if act.begins else "end ") + act.fault.text for act in acts]


def test_a_moment_in_seconds() -> None:
    plan = schedule("stop:worker-1@1s+2s")
    assert due(plan, 0.9, worker_1=4) == []
    assert due(plan, 1.1, worker_1=5) == ["begin stop:worker-1@1s+2s"]
    assert due(plan, 3.0) == []
    assert due(plan, 3.2) == ["end stop:worker-1@1s+2s"]
    assert due(plan, 9.0, worker_1=5) == []
    assert plan.missed() == []


def test_a_moment_in_steps() -> None:
    plan = schedule("kill:server-0@step=5")
    assert due(plan, 99.0, server_0=4) == []
    assert due(plan, 99.1, server_0=6) == ["begin kill:server-0@step=5"]
    assert due(plan, 99.2, server_0=7) == []


def test_who_is_not_there_is_waited_for() -> None:
    plan = schedule("kill:worker-0@1s")
    assert due(plan, 5.0) == []
    assert [fault.text for fault in plan.missed()] == ["kill:worker-0@1s"]
    assert due(plan, 5.1, worker_0=0) == ["begin kill:worker-0@1s"]


def test_a_worker_does_what_is_due_at_a_step_itself_and_once() -> None:
    plan = schedule("kill:worker-0@step=5", "kill:worker-0@step=9", "kill:worker-1@step=5")
    assert due(plan, 99.0, worker_0=50, worker_1=50) == []
    assert plan.told("worker-0")["own"] == [
        {"number": 0, "act": "kill", "step": 5},
        {"number": 1, "act": "kill", "step": 9},
    ]
    plan.begun(0, 99.0)
    assert not plan.waits(0)
    assert plan.told("worker-0")["own"] == [{"number": 1, "act": "kill", "step": 9}]


def test_a_server_can_be_slow_for_a_while_and_limited_all_the_time() -> None:
    plan = schedule("slow:server-0x8@1s+1s", "limit:server-0=100mbit")
    assert len(due(plan, 0.0, server_0=0)) == 1  # the limit
    due(plan, 1.0, server_0=0)
    assert (plan.slow("server-0"), plan.slow("server-1")) == (8.0, 1.0)
    due(plan, 2.0, server_0=0)
    assert plan.slow("server-0") == 1.0


def test_what_a_worker_is_told_holds_now() -> None:
    plan = schedule("slow:worker-0x2", "slow:worker-0x1.5@1s+1s", "disk-full@2s+1s")
    due(plan, 0.0, worker_0=0)
    assert (plan.told("worker-0")["slow"], plan.told("worker-1")["slow"]) == (2.0, 1.0)
    due(plan, 1.0, worker_0=0)
    assert plan.told("worker-0")["slow"] == 3.0
    assert not plan.told("worker-1")["full"]
    due(plan, 2.0, worker_0=0)
    assert plan.told("worker-0") == {"own": [], "slow": 2.0, "full": True}
    due(plan, 3.0)
    assert not plan.full


@given(
    st.lists(st.sampled_from(TEXTS), max_size=8),
    st.lists(
        st.tuples(st.floats(0, 2), st.sets(st.sampled_from(LIVING)), st.integers(0, 3)),
        max_size=20,
    ),
)
def test_each_begins_once_and_ends_once_and_never_early(
    texts: list[str], looks: list[tuple[float, set[str], int]]
) -> None:
    faults = [injection(text) for text in texts]
    plan = Schedule(faults)
    now, step = 0.0, 0
    began: dict[int, float] = {}
    ended: set[int] = set()
    for later, living, more in looks:
        now, step = now + later, step + more
        for act in plan.due(now, dict.fromkeys(living, step)):
            fault = faults[act.number]
            if act.begins:
                assert act.number not in began
                assert not fault.own
                assert not fault.role or fault.role in living
                assert now >= fault.at
                assert step >= (fault.step or 0)
                began[act.number] = now
            else:
                assert act.number in began
                assert act.number not in ended
                assert fault.lasts is not None
                assert now >= began[act.number] + fault.lasts
                ended.add(act.number)
    assert len(plan.missed()) == len(faults) - len(began)
    # Once all live and time has passed, all that is the supervisor's to do has begun and ended.
    plan.due(now + 10, dict.fromkeys(LIVING, 10))
    plan.due(now + 20, dict.fromkeys(LIVING, 10))
    assert all(fault.own for fault in plan.missed())
    assert plan.full == ("disk-full@2s" in texts)


def test_a_server_is_told_whose_connections_are_harmed_while_they_are() -> None:
    plan = schedule("cut:worker-1-server-0@1s+2s", "mute:standby-0-server-0@2s+1s")
    there = {"worker_1": 1, "server_0": 1, "standby_0": 1}
    assert due(plan, 1.0, worker_1=1) == []  # its other end is not there
    assert due(plan, 1.0, **there) == ["begin cut:worker-1-server-0@1s+2s"]
    assert plan.lines("server-0") == {"cut": ["worker-1"], "mute": []}
    assert plan.lines("server-1") == {"cut": [], "mute": []}
    due(plan, 2.5, **there)
    assert plan.lines("server-0") == {"cut": ["worker-1"], "mute": ["standby-0"]}
    due(plan, 3.2, **there)
    assert plan.lines("server-0") == {"cut": [], "mute": ["standby-0"]}
