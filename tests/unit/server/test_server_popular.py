"""Popular rows that a worker keeps for itself change as if they were in the table all the time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paceline.data.sparse.rows import SparseRows
from paceline.kernels import popular as loops
from paceline.server import popular
from paceline.server.catalog import STATES
from paceline.server.elementwise import Hyper
from paceline.server.popular import Popular
from paceline.server.rowrules import RowRule

FEATURES = 4000
BIAS, SCALE = np.float32(0.1), np.float32(0.5)
RULES = ["sgd", "adagrad", "ftrl"]


def clicks(samples: int, seed: int, *, valued: bool = False) -> tuple[SparseRows, np.ndarray]:
    """Rows of 1 to 9 entries, of which a few features are most."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(rng.integers(1, 10, samples))))
    ids = np.minimum(rng.zipf(1.5, offsets[-1]) * 7, FEATURES - 1).astype(np.int32)
    values = torch.from_numpy(rng.normal(size=offsets[-1]).astype(np.float32)) if valued else None
    rows = SparseRows(torch.from_numpy(ids), torch.from_numpy(offsets), values)
    return rows, rng.integers(0, 2, samples).astype(np.float32)


def table_of(name: str) -> np.ndarray:
    return np.zeros((FEATURES, 1 + STATES[name]), np.float32)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are popular after few samples."""
    monkeypatch.setattr(popular, "SETTLED", 50)
    monkeypatch.setattr(popular, "KEPT", 64)
    monkeypatch.setattr(popular, "AGAIN", 300)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_one_worker_learns_what_it_would_without(name: str, valued: bool) -> None:
    rule = RowRule(name, Hyper(l1=0.001))
    plain, kept = table_of(name), table_of(name)
    mine = Popular(1 + STATES[name])
    for seed in range(8):
        rows, labels = clicks(200, seed, valued=valued)
        told = *rows.located(), labels, BIAS, SCALE
        assert rule.descending(kept, 0.1, 1, mine)(*told) == pytest.approx(
            rule.descending(plain, 0.1, 1)(*told), rel=1e-4
        )
    assert len(mine._chosen) > 3
    assert kept == pytest.approx(plain, rel=1e-3, abs=1e-5)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("name", RULES)
def test_what_two_did_by_themselves_adds_up(name: str) -> None:
    """While one has popular rows for itself, the other gives its own back."""
    rule = RowRule(name, Hyper())
    table = table_of(name)
    mine = Popular(1 + STATES[name])
    rows, labels = clicks(200, 1)
    rule.descending(table, 0.1, 1, mine)(*rows.located(), labels, BIAS, SCALE)
    chosen, tags = mine._chosen, mine._places.tags
    near, before = mine._places.near, mine._before
    start = table.copy()
    loops.borrow(table, tags, chosen, near, before)
    others = np.random.default_rng(3).uniform(0.01, 0.02, table.shape).astype(np.float32)
    table += others
    near[chosen] += 0.5
    loops.give_back(table, tags, chosen, near, before, *rule.told(0.1, 1))
    those = np.zeros(FEATURES, bool)
    those[tags[chosen]] = True
    state = slice(1, None) if name == "ftrl" else slice(None)
    expected = start + others + 0.5 * those[:, None]
    assert table[:, state] == pytest.approx(expected[:, state], rel=1e-5)
    if name == "ftrl":  # weights are what a gradient of nothing leaves of that state
        again = expected.copy()
        nothing = np.zeros((FEATURES, 1), np.float32)
        rule(again[:, :1], again[:, 1:, None], np.arange(FEATURES), nothing, 0.1, 1)
        assert table[those, 0] == pytest.approx(again[those, 0], rel=1e-4)


def test_means_do_not_add_up() -> None:
    adding = [name for name in (*RULES, "adam") if RowRule(name, Hyper()).adds_up]
    assert adding == RULES


@given(st.lists(st.lists(st.integers(0, 50), max_size=6), max_size=30), st.integers(1, 4))
def test_whoever_is_elected_has_most_of_its_place(samples: list[list[int]], least: int) -> None:
    """A row with more votes than all others of its place together always is."""
    ids = np.array([id_ for sample in samples for id_ in sample], np.int32)
    offsets = np.cumsum([0, *map(len, samples)])
    located = SparseRows(torch.from_numpy(ids), torch.from_numpy(offsets)).located()
    tags, votes, chosen = np.empty(8, np.uint32), np.empty(8, np.int32), np.empty(8, np.int64)
    count = loops.elect(located.ids, located.counts, least, tags, votes, chosen)
    assert chosen[:count].tolist() == np.flatnonzero(tags != loops.FREE).tolist()
    place = {id_: int(loops.place_of(np.uint32(id_), loops.shift_of(8))) for id_ in range(51)}
    for at in range(8):
        entries = [id_ for id_ in ids.tolist() if place[id_] == at]
        most = [id_ for id_ in set(entries) if 2 * entries.count(id_) >= len(entries) + least]
        if most:
            assert most == [int(tags[at])]


@pytest.mark.usefixtures("soon")
def test_a_row_beyond_the_table_ends_it() -> None:
    rule = RowRule("adagrad", Hyper())
    table, mine = table_of("adagrad"), Popular(2)
    rows, labels = clicks(300, 1)
    rows.ids[-1] = FEATURES
    *_, highest = rule.descending(table, 0.1, 1, mine)(*rows.located(), labels, BIAS, SCALE)
    assert highest == FEATURES
    assert np.isfinite(table).all()
