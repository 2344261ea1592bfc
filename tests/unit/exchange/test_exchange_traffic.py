"""Who got what, where that follows from what was exchanged."""

from __future__ import annotations

from paceline.exchange.traffic import GROUP, Ring, added, with_shards
from paceline.types import Traffic


def test_over_shared_memory_each_server_has_its_part_of_every_gradient() -> None:
    shards = [(0, 3), (3, 7)]
    assert with_shards(shards, given=10 * 7 * 4) == (
        Traffic("server-0", 120, 120, 10, 10),
        Traffic("server-1", 160, 160, 10, 10),
    )
    assert with_shards(shards, given=0)[0] == Traffic("server-0", 0, 0, 0, 0)
    assert with_shards([], given=0) == ()
    assert with_shards([(0, 0)], given=0) == (Traffic("server-0", 0, 0, 0, 0),)


def test_around_a_ring_it_goes_to_the_one_before_and_comes_from_the_one_after() -> None:
    ring = Ring()
    ring.form((0, 2, 5), 2, known=True)
    ring.add(100)
    ring.add(100)
    assert set(ring.told()) == {Traffic("worker-0", 200, 0), Traffic("worker-5", 0, 200)}
    assert (ring.sent, ring.received) == (200, 200)


def test_the_first_and_the_last_of_a_ring_are_neighbours() -> None:
    ring = Ring()
    ring.form((0, 1, 2), 0, known=True)
    ring.add(1)
    assert set(ring.told()) == {Traffic("worker-2", 1, 0), Traffic("worker-1", 0, 1)}


def test_of_two_each_is_before_and_after_the_other() -> None:
    ring = Ring()
    ring.form((0, 1), 1, known=True)
    ring.add(7)
    assert ring.told() == (Traffic("worker-0", 7, 7),)


def test_another_group_has_other_neighbours_and_what_was_before_stays() -> None:
    ring = Ring()
    ring.form((0, 1), 0, known=True)
    ring.add(5)
    ring.form((0, 2), 0, known=True)
    ring.add(3)
    ring.form((0,), 0, known=True)  # alone: nothing is sent
    assert set(ring.told()) == {Traffic("worker-1", 5, 5), Traffic("worker-2", 3, 3)}
    assert ring.sent == 8


def test_where_the_library_chooses_only_the_sum_is_known() -> None:
    ring = Ring()
    ring.form((0, 1, 2), 1, known=False)
    ring.add(9)
    assert ring.told() == (Traffic(GROUP, 9, 9, None, None),)


def test_two_ways_to_one_peer_are_one() -> None:
    one, two = Traffic("server-0", 1, 2, 3, 4), Traffic("server-0", 10, 20, 30, None)
    assert added([one, Traffic("server-1", 5), two]) == (
        Traffic("server-0", 11, 22, 33, None),
        Traffic("server-1", 5),
    )
