"""Shares by speed: they are a whole batch, they come to where all arrive together, and rest there.

Workers here are costs: a fixed part a step and a part a sample, with or without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.exchange.balance import Balance, Pace, shared_out

Cost = tuple[float, float]  # seconds a step, seconds a sample

speeds = st.floats(1e-6, 1e6)
costs = st.tuples(st.floats(0, 0.01), st.floats(1e-5, 1e-3))


def counts(balance: Balance) -> list[int]:
    return [end - begin for begin, end in balance.shares.values()]


def seconds(cost: Cost, samples: int) -> float:
    return cost[0] + cost[1] * samples


def longest(balance: Balance, crew: list[Cost]) -> float:
    """What a round takes with these shares, without noise."""
    return max(seconds(*pair) for pair in zip(crew, counts(balance), strict=True))


def shortest(whole: int, crew: list[Cost]) -> float:
    """What a round takes at best, were samples divisible, with at least one for each."""
    least, most = max(a + b for a, b in crew), max(a + b * whole for a, b in crew)
    for _ in range(60):
        half = (least + most) / 2
        enough = sum((half - a) / b for a, b in crew) >= whole
        least, most = (least, half) if enough else (half, most)
    return most


def take(
    balance: Balance, crew: list[Cost], rounds: int, noise: Callable[[], float] = lambda: 1.0
) -> list[float]:
    """So many rounds; how near each came to the best there is, without the noise."""
    near = []
    whole = sum(counts(balance))
    for _ in range(rounds):
        near.append(shortest(whole, crew) / longest(balance, crew))
        paces = {
            worker: Pace(end - begin, seconds(crew[worker], end - begin) * noise())
            for worker, (begin, end) in balance.shares.items()
        }
        balance.after(paces, paces.keys())
    return near


@given(speeds=st.lists(speeds, min_size=1, max_size=20), more=st.integers(0, 500))
def test_what_is_shared_out_is_the_whole_and_everybody_has_some(
    speeds: list[float], more: int
) -> None:
    whole = len(speeds) + more
    parts = shared_out(whole, speeds)
    assert sum(parts) == whole
    assert min(parts) >= 1


@given(speeds=st.lists(st.integers(1, 9999), min_size=2, max_size=12), more=st.integers(0, 500))
def test_the_faster_has_no_less(speeds: list[int], more: int) -> None:
    parts = shared_out(len(speeds) + more, [float(speed) for speed in speeds])
    for a, b in pairwise(sorted(zip(speeds, parts, strict=True))):
        assert a[1] <= b[1] or a[0] == b[0]


@given(parts=st.lists(st.integers(1, 60), min_size=1, max_size=10), unit=st.floats(0.01, 100))
def test_what_divides_evenly_is_exact(parts: list[int], unit: float) -> None:
    assert shared_out(sum(parts), [unit * part for part in parts]) == parts


paces = st.builds(Pace, st.integers(0, 50), st.floats(0, 1e30))


@given(workers=st.integers(1, 6), more=st.integers(0, 60), data=st.data())
def test_shares_are_a_whole_batch_whatever_is_said_and_whoever_comes_and_goes(
    workers: int, more: int, data: st.DataObject
) -> None:
    """The same for two who hear the same."""
    whole = workers + more
    one, other = (Balance(whole, range(workers)) for _ in range(2))
    present: Collection[int] = range(workers)
    for _ in range(data.draw(st.integers(0, 30))):
        if data.draw(st.booleans()):  # a sound round, else anything
            said = {
                worker: Pace(end - begin, data.draw(st.floats(0, 10)))
                for worker, (begin, end) in one.shares.items()
            }
        else:
            said = data.draw(st.dictionaries(st.integers(0, workers - 1), paces))
        if data.draw(st.integers(0, 9)) == 0:
            present = data.draw(st.sets(st.integers(0, workers - 1)))
        one.after(said, present)
        other.after(dict(reversed(said.items())), sorted(present, reverse=True))
        assert one.shares == other.shares
        assert set(one.shares) == set(present)
        ends = [0, *(end for _, end in one.shares.values())]
        assert [begin for begin, _ in one.shares.values()] == ends[:-1]
        assert ends[-1] == (whole if present else 0)
        assert all(count >= 1 for count in counts(one))


@given(crew=st.lists(costs, min_size=1, max_size=5), batch=st.integers(32, 256))
def test_all_come_to_arrive_together(crew: list[Cost], batch: int) -> None:
    """Up to one sample, and to a gain that is not worth a change."""
    whole = batch * len(crew)
    balance = Balance(whole, range(len(crew)))
    take(balance, crew, 300)
    least = 1.03 * shortest(whole, crew) + max(b for _, b in crew)
    assert longest(balance, crew) <= least


@pytest.mark.parametrize("fixed", [0.0, 0.0003, 0.001])
@pytest.mark.parametrize("ratio", [1.0, 1.78, 4.0])
def test_two_rounds_are_enough_to_be_near(fixed: float, ratio: float) -> None:
    """The fixed part is up to a sixth of an even share's time, as that of small models is."""
    balance = Balance(128, range(2))
    near = take(balance, [(fixed, 1e-4), (fixed, ratio * 1e-4)], 20)
    assert near[2] > 0.93
    assert min(near[5:]) > 0.97


def test_a_slow_first_round_does_no_harm() -> None:
    balance = Balance(128, range(2))
    first = {0: Pace(64, 1.0), 1: Pace(64, 0.3)}  # the faster one had more to make ready
    balance.after(first, [0, 1])
    near = take(balance, [(0, 1e-4), (0, 1.78e-4)], 10)
    assert min(near[1:]) > 0.97


def noisy(seed: int) -> Callable[[], float]:
    """As seconds are on a busy machine: a twentieth up or down, and now and then twice as long."""
    random = Random(seed)
    return lambda: max(0.5, random.gauss(1, 0.05)) * (2 if random.random() < 0.03 else 1)


@pytest.mark.parametrize("seed", range(5))
def test_noise_does_not_shake_them(seed: int) -> None:
    balance = Balance(128, range(2))
    crew, noise = [(0.001, 1e-4), (0.001, 1.78e-4)], noisy(seed)
    take(balance, crew, 30, noise)
    changes, near = 0, []
    for _ in range(300):
        before = balance.shares
        near += take(balance, crew, 1, noise)
        changes += balance.shares != before
    assert sum(near) / len(near) > 0.975
    assert changes < 20


@pytest.mark.parametrize("seed", range(5))
def test_a_worker_whose_speed_changes_is_followed(seed: int) -> None:
    balance, noise = Balance(128, range(2)), noisy(seed)
    crew = [(0.001, 1e-4), (0.001, 1.78e-4)]
    take(balance, crew, 101, noise)
    after = take(balance, crew[::-1], 60, noise)
    assert after[0] < 0.7
    assert min(after[12:]) > 0.9


def test_those_who_stay_share_what_one_who_left_had() -> None:
    balance = Balance(120, range(3))
    crew = [(0, 1e-4), (0, 2e-4), (0, 3e-4)]
    take(balance, crew, 10)
    shares = balance.shares
    last = {w: Pace(b - a, seconds(crew[w], b - a)) for w, (a, b) in shares.items()}
    balance.after(last, [0, 2])
    assert list(balance.shares) == [0, 2]
    assert counts(balance) == [90, 30]


def test_one_who_is_new_is_taken_for_an_ordinary_one_until_its_speed_is_known() -> None:
    balance = Balance(120, [0, 1])
    balance.after({0: Pace(60, 0.06), 1: Pace(60, 0.06)}, [0, 1, 2])
    assert counts(balance) == [40, 40, 40]
    take(balance, [(0, 1e-3), (0, 1e-3), (0, 4e-3)], 6)
    assert counts(balance) == [54, 53, 13]


def test_a_short_last_batch_says_nothing() -> None:
    balance = Balance(128, range(2))
    take(balance, [(0, 1e-4), (0, 2e-4)], 5)
    shares = balance.shares
    for _ in range(50):
        balance.after({0: Pace(3, 9.0), 1: Pace(1, 0.001)}, [0, 1])
    assert balance.shares == shares


@given(workers=st.integers(2, 5), more=st.integers(0, 60), data=st.data())
def test_whoever_joins_deals_as_the_others_do(workers: int, more: int, data: st.DataObject) -> None:
    """It learns what is known of everybody's speed, and nothing else."""
    whole, seconds_ = workers + more, st.floats(0.001, 10)
    old = Balance(whole, range(workers))

    def sound() -> dict[int, Pace]:
        return {
            worker: Pace(end - begin, data.draw(seconds_))
            for worker, (begin, end) in old.shares.items()
        }

    for _ in range(data.draw(st.integers(0, 8))):
        old.after(sound(), range(workers))
    if data.draw(st.booleans()):  # it was gone for a while, or came back within its last round
        old.after(sound(), range(workers - 1))
    old.after(sound(), range(workers), new=[workers - 1])
    new = Balance(whole, range(workers))
    new.join(old.known, range(workers))
    for _ in range(data.draw(st.integers(0, 20))):
        assert new.shares == old.shares
        said = sound()
        old.after(said, range(workers))
        new.after(said, range(workers))
    assert new.shares == old.shares
