"""Rates over a window, from samples of counters."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from paceline.diagnose.counters import Rate, grown, level, rate, within
from paceline.diagnose.usage import hosts_used, roles_used
from paceline.types import HostResources, Nic, Resources, Traffic


class At(NamedTuple):
    time: float
    value: float | None


def samples(*pairs: tuple[float, float | None]) -> list[At]:
    return [At(*pair) for pair in pairs]


def value(sample: At) -> float | None:
    return sample.value


def times(found: Any) -> list[float]:
    return [sample.time for sample in found]


def test_a_rate_is_a_mean_and_a_peak() -> None:
    assert rate(samples((0, 0), (1, 10), (2, 40), (4, 40)), value) == Rate(10.0, 30.0)


def test_what_is_not_known_twice_has_no_rate() -> None:
    assert rate([], value) is None
    assert rate(samples((0, 1)), value) is None
    assert rate(samples((1, 1), (1, 2)), value) is None
    assert rate(samples((0, None), (1, 2), (2, None)), value) is None
    assert rate(samples((0, None), (1, 2), (3, 6)), value) == Rate(2.0, 2.0)


def test_two_samples_at_nearly_one_moment_make_no_peak() -> None:
    """A clock of 10 ms would make 200 % of it."""
    found = rate(samples((0, 0), (0.5, 0.25), (0.505, 0.26), (1.0, 0.5)), value)
    assert found is not None
    assert found == pytest.approx((0.5, 0.5), rel=0.03)
    assert rate(samples((0, 0), (0.1, 1)), value) == pytest.approx((10, 10))


def test_a_counter_that_begins_anew_and_one_that_is_put_right() -> None:
    fell = samples((0, 10), (1, 20), (2, 4), (3, 5))
    assert rate(fell, value, anew=True) == Rate(5.0, 10.0)
    assert rate(fell, value) == Rate(11 / 3, 10.0)
    assert grown(fell, value) == 25
    assert grown(samples((0, None)), value) is None


def test_a_level_is_no_counter() -> None:
    assert level(samples((0, 3), (1, None), (2, 1)), value) == Rate(2.0, 3.0)
    assert level(samples((0, None)), value) is None


def test_a_window_takes_what_is_in_it_or_around_it() -> None:
    each = samples(*((n / 2, n) for n in range(11)))  # 0 to 5 s
    assert within(each, None) is each
    assert times(within(each, (1.1, 3.9))) == [1.5, 2.0, 2.5, 3.0, 3.5]
    assert times(within(each, (2.1, 2.4))) == [2.0, 2.5]
    assert times(within(each, (1.9, 2.6))) == [2.0, 2.5]
    assert times(within(each, (1.6, 2.9))) == [1.5, 2.0, 2.5, 3.0]  # half a second of 1.3
    assert times(within(each, (4.9, 9.0))) == [4.5, 5.0]
    assert within(each, (7.0, 9.0)) is each
    assert times(within(each, (-3.0, -2.0))) == times(each)
    assert within([], (0.0, 1.0)) == []


def a_role(time: float, cpu: float, **more: Any) -> Resources:
    return Resources(
        time=time,
        role="worker-0",
        cpu_seconds=cpu,
        memory_bytes=int(time),
        sent=int(100 * time),
        received=0,
        **more,
    )


def test_a_role_in_a_window() -> None:
    used = roles_used(
        [
            a_role(0, 0, involuntary=0, traffic=(Traffic("server-0", 10, 0, 1, 0),)),
            a_role(1, 0.5, involuntary=100, traffic=(Traffic("server-0", 20, 0, 2, 0),)),
            a_role(2, 1.0, involuntary=500, traffic=(Traffic("server-0", 60, 5, 7, 1),)),
            a_role(9, 1.0, involuntary=500),
            Resources(time=1, role="server-0", cpu_seconds=0, memory_bytes=0, sent=0, received=0),
        ],
        (1.0, 2.0),
    )
    assert list(used) == ["worker-0"]
    worker = used["worker-0"]
    assert (worker.seconds, worker.cpu, worker.involuntary) == (1, Rate(0.5, 0.5), Rate(400, 400))
    assert worker.sent == Rate(100, 100)
    assert (worker.voluntary, worker.read, worker.delay) == (None, None, None)
    assert worker.traffic == (Traffic("server-0", 40, 5, 5, 1),)
    assert worker.memory_bytes == 2


def test_traffic_of_a_new_peer_a_new_life_and_unknown_messages() -> None:
    one = a_role(0, 0, traffic=(Traffic("worker-1", 50, 50, 5, 5), Traffic("group", 1, 1)))
    two = a_role(
        1,
        0,
        traffic=(
            Traffic("worker-1", 20, 60, 2, 6),
            Traffic("worker-2", 7, 8, 1, 1),
            Traffic("group", 4, 4),
        ),
    )
    assert roles_used([one, two])["worker-0"].traffic == (
        Traffic("worker-1", 20, 10, 2, 1),
        Traffic("worker-2", 7, 8, 1, 1),
        Traffic("group", 3, 3, None, None),
    )


def test_a_host_whose_interface_and_core_come_later() -> None:
    """And whose time waiting for disks is put right, as Linux may do."""
    used = hosts_used(
        [
            HostResources(time=0, host="a", cores=(1.0,), iowait_seconds=900.0, running=1),
            HostResources(
                time=1,
                host="a",
                cores=(1.5, 7.0),
                iowait_seconds=899.9,
                running=3,
                nics={"eth1": Nic(100, 0)},
                memory_available=5,
            ),
            HostResources(
                time=2,
                host="a",
                cores=(2.0, 8.0),
                iowait_seconds=900.0,
                running=2,
                nics={"eth1": Nic(300, 50)},
                memory_available=7,
            ),
            HostResources(time=1, host="b"),
        ]
    )
    assert list(used) == ["a"]
    host = used["a"]
    assert host.cores == (Rate(0.5, 0.5), Rate(1.0, 1.0))
    assert host.iowait == pytest.approx((0.05, 0.1))
    assert host.running == Rate(2.0, 3.0)
    assert host.nics["eth1"][:2] == (Rate(200, 200), Rate(50, 50))
    assert host.memory_available == 5
    assert (host.steal, host.load, host.pressure, host.gpus) == (None, None, {}, ())
