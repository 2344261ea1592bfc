"""Threads and cores: nobody gets none, and no two workers are bound to the same core."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.launch.placement import place_evaluator, place_server, place_worker


@given(
    workers=st.integers(1, 16),
    threads=st.none() | st.integers(1, 8),
    cores=st.sets(st.integers(0, 255), min_size=1, max_size=32).map(sorted),
)
def test_bound_workers_have_cores_of_their_own(
    workers: int, threads: int | None, cores: list[int]
) -> None:
    places = [place_worker(n, workers, threads, cores, len(cores)) for n in range(workers)]
    assert len({place.threads for place in places}) == 1
    assert places[0].threads == threads if threads else places[0].threads >= 1
    bound = [place.cores for place in places if place.cores is not None]
    if bound:
        flat = [core for some in bound for core in some]
        assert len(bound) == workers
        assert sorted(flat) == cores
        assert all(len(some) == places[0].threads for some in bound)


@pytest.mark.parametrize(
    ("workers", "cores", "bound"), [(1, 4, False), (2, 4, True), (4, 4, True), (3, 4, False)]
)
def test_workers_are_bound_where_they_fill_the_machine(
    workers: int, cores: int, bound: bool
) -> None:
    place = place_worker(0, workers, None, list(range(cores)), cores)
    assert (place.cores is not None) == bound


def test_threads_are_as_many_as_are_granted() -> None:
    """A container of two cores' time on a host with 64."""
    place = place_worker(0, 2, None, list(range(64)), 2)
    assert (place.threads, place.cores) == (1, None)


def test_servers_and_evaluators_float() -> None:
    assert place_server().cores is None
    assert place_evaluator().cores is None
    assert place_evaluator().nice > 0
