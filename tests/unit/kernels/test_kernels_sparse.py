"""Compiled loops over rows against numpy and plain torch."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paceline.data.sparse.rows import SparseRows
from paceline.kernels import sparse
from paceline.server.catalog import STATES
from paceline.server.elementwise import Hyper
from paceline.server.rowrules import RowRule
from paceline.server.rules import make_rule

ids = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=60)
few = st.lists(st.integers(0, 7), min_size=1, max_size=60)


@given(st.lists(st.one_of(ids, few), min_size=1, max_size=4))
def test_localize_finds_each_row_once(batches: list[list[int]]) -> None:
    """One batch after another in the same table: nothing of a batch is left for the next."""
    slots = np.full(16, sparse.FREE, np.int64)
    for batch in batches:
        entries = np.array(batch, np.int32)
        rows, inverse = np.empty(60, np.int64), np.empty(len(entries), np.int32)
        while (count := sparse.localize(entries, slots, rows, inverse)) == sparse.CROWDED:
            assert (slots == sparse.FREE).all()
            assert len(set(batch)) > len(slots) // 2
            slots = np.full(2 * len(slots), sparse.FREE, np.int64)
        assert sorted(rows[:count].tolist()) == sorted(set(batch))
        assert rows[inverse].tolist() == batch
        assert (slots == sparse.FREE).all()


@pytest.mark.parametrize("valued", [False, True])
@given(data=st.data())
def test_logistic_is_what_autograd_finds(valued: bool, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    rows, features = data.draw(st.integers(0, 6)), 9
    counts = rng.integers(0, 5, rows)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    inverse = rng.integers(0, features, offsets[-1]).astype(np.int32)
    values = rng.normal(size=offsets[-1] if valued else 0).astype(np.float32)
    weights = (rng.normal(size=features) * 3).astype(np.float32)
    labels = rng.integers(0, 2, rows).astype(np.float32)
    gradient = np.zeros(features, np.float32)
    loss, tilt = sparse.logistic(
        weights, inverse, offsets, values, labels, np.float32(0.3), np.float32(0.25), gradient
    )
    w = torch.tensor(weights, requires_grad=True)
    b = torch.tensor(0.3, requires_grad=True)
    z = [
        b + sum(w[inverse[e]] * (values[e] if valued else 1.0) for e in range(begin, end))
        for begin, end in pairwise(offsets)
    ]
    out = np.empty(rows, np.float32)
    sparse.scores(weights, inverse, offsets, values, np.float32(0.3), out)
    if not rows:
        assert (loss, tilt) == (0, 0)
        return
    scores = torch.stack(z)
    assert out == pytest.approx(scores.detach().numpy(), rel=1e-5, abs=1e-5)
    y = torch.from_numpy(labels)
    whole = torch.nn.functional.binary_cross_entropy_with_logits(scores, y, reduction="sum")
    (whole * 0.25).backward()
    assert loss == pytest.approx(whole.item(), rel=1e-5, abs=1e-6)
    assert tilt == pytest.approx(b.grad.item(), rel=1e-4, abs=1e-6)
    expected = np.zeros(features) if w.grad is None else w.grad.numpy()
    assert gradient == pytest.approx(expected, rel=1e-4, abs=1e-6)


OPTIMIZERS: dict[str, Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "adam": lambda p: torch.optim.SparseAdam(p, lr=0.1),
}


@pytest.mark.matrix(3)
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_rules_are_torchs_own_for_sparse_gradients(name: str, together: bool) -> None:
    rng = np.random.default_rng(3)
    rows, columns, kept = 20, 3, STATES[name]
    first = rng.normal(size=(rows, columns)).astype(np.float32)
    parameter = torch.nn.Parameter(torch.tensor(first))
    optimizer = OPTIMIZERS[name]([parameter])
    if together:
        whole = np.zeros((rows, 1 + kept, columns), np.float32)
        weights, state = whole[:, 0], whole[:, 1:]
    else:
        weights = np.zeros((rows, columns), np.float32)
        state = np.zeros((kept, rows, columns), np.float32).transpose(1, 0, 2)
    weights[:] = first
    rule = RowRule(name, Hyper())
    for step in range(1, 13):
        touched = rng.permutation(rows)[: rng.integers(1, 8)].astype(np.int64)
        values = rng.normal(size=(len(touched), columns)).astype(np.float32)
        parameter.grad = torch.sparse_coo_tensor(
            torch.from_numpy(touched)[None], torch.from_numpy(values), (rows, columns)
        )
        optimizer.step()
        rule(weights, state, touched, values, 0.1, step)
        assert weights == pytest.approx(parameter.detach().numpy(), rel=1e-6, abs=1e-6)


# Without decay and values, the rules that are used most have loops of their own.
DECAYED = [(name, decay) for name in (*OPTIMIZERS, "ftrl") for decay in (0.0, 0.01)]


@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize(("name", "decay"), DECAYED)
@pytest.mark.parametrize("width", [3, 16, 39])
def test_sample_by_sample_is_batches_of_one(
    name: str, decay: float, valued: bool, width: int
) -> None:
    rng = np.random.default_rng(11)
    samples, features = 30, 4 * width
    offsets = np.arange(samples + 1) * width
    chosen = [rng.permutation(features)[:width] for _ in range(samples)]
    ids_ = np.concatenate(chosen).astype(np.int32)
    values = rng.normal(size=width * samples if valued else 0).astype(np.float32)
    labels = rng.integers(0, 2, samples).astype(np.float32)
    rule = RowRule(name, Hyper(l1=0.01, weight_decay=decay))
    one, other = (np.zeros((features, 1 + STATES[name], 1), np.float32) for _ in range(2))
    bias, scale = np.float32(0.2), np.float32(0.5)
    descend = rule.descending(one[..., 0], 0.1, 3)
    entries = SparseRows(*map(torch.from_numpy, (ids_, offsets, values)))
    if not valued:
        entries.values = None
    loss, tilt, highest = descend(*entries.located(), labels, bias, scale)
    assert highest == max(ids_)
    losses, tilts = 0.0, 0.0
    for sample in range(samples):
        mine = slice(width * sample, width * (sample + 1))
        rows, found = ids_[mine].astype(np.int64), np.zeros(width, np.float32)
        told = sparse.logistic(
            *(other[rows, 0, 0], np.arange(width, dtype=np.int32), np.array([0, width])),
            *(values[mine], labels[sample : sample + 1], bias, scale, found),
        )
        losses, tilts = losses + told[0], tilts + told[1]
        rule(other[:, 0], other[:, 1:], rows, found[:, None], 0.1, 3)
    assert one == pytest.approx(other, rel=1e-5, abs=1e-6)
    assert (loss, tilt) == pytest.approx((losses, tilts), rel=1e-5)


def test_a_row_that_a_sample_has_twice_takes_the_same_step_twice() -> None:
    """Plain Adagrad finds all steps of a sample before it takes one."""
    table = np.full((3, 2), 0.25, np.float32)
    entries = SparseRows(torch.tensor([1, 2, 1], dtype=torch.int32), torch.tensor([0, 3]))
    descend = RowRule("adagrad", Hyper()).descending(table, 0.1, 1)
    descend(*entries.located(), np.ones(1, np.float32), np.float32(0), np.float32(1))
    push = 1 / (1 + np.exp(-0.75)) - 1  # of its three weights
    step = 0.1 * push / (np.sqrt(0.25 + push**2) + Hyper().eps)
    assert table[:, 0] == pytest.approx([0.25, 0.25 - 2 * step, 0.25 - step], rel=1e-5)
    assert table[:, 1] == pytest.approx(0.25 + np.array([0, 2, 1]) * push**2, rel=1e-5)


def test_ftrl_is_the_papers_of_rows_and_of_ranges() -> None:
    """In double precision, and beside the rule for dense parameters."""
    rng = np.random.default_rng(5)
    size, lr, hyper = 12, 0.2, Hyper(l1=0.3, weight_decay=0.5, beta=1.0)
    z, n, w = np.zeros(size), np.zeros(size), np.zeros(size)
    weights, state = np.zeros((size, 1), np.float32), np.zeros((size, 2, 1), np.float32)
    dense = torch.zeros(size)
    rule, own = RowRule("ftrl", hyper), make_rule("ftrl", size, hyper)
    rows = np.arange(size, dtype=np.int64)
    for step in range(1, 30):
        g = rng.normal(size=size).astype(np.float32)
        sigma = (np.sqrt(n + g.astype(float) ** 2) - np.sqrt(n)) / lr
        z += g - sigma * w
        n += g.astype(float) ** 2
        w = np.where(
            np.abs(z) <= hyper.l1,
            0.0,
            (np.sign(z) * hyper.l1 - z) / ((hyper.beta + np.sqrt(n)) / lr + hyper.weight_decay),
        )
        rule(weights, state, rows, g[:, None], lr, step)
        own.step(dense, dense, torch.from_numpy(g), slice(0, size), lr, step)
        assert weights[:, 0] == pytest.approx(w, rel=1e-4, abs=1e-5)
        assert dense.numpy() == pytest.approx(w, rel=1e-4, abs=1e-5)
    assert (weights == 0).any()


@pytest.mark.parametrize("hyper", [Hyper(), Hyper(l1=0.3, weight_decay=0.5, beta=0.7)])
def test_ftrl_goes_on_from_where_weights_begin(hyper: Hyper) -> None:
    """From nothing but a state of zeros it would take a weight that is not zero for one that is.

    After the first gradient it is w − g / ((β + |g|) / η + λ₂), less what the penalty takes.
    """
    rng, lr = np.random.default_rng(6), 0.2
    begin = np.array([-1.1, 2.0, 0.3, 0.0], np.float32)
    first = (0.01 * rng.normal(size=4)).astype(np.float32)
    weights, state = begin[:, None].copy(), np.zeros((4, 2, 1), np.float32)
    dense = torch.from_numpy(begin.copy())
    rule, own = RowRule("ftrl", hyper), make_rule("ftrl", 4, hyper)
    nothing = np.zeros(4, np.float32)
    rows = np.arange(4, dtype=np.int64)
    for step, g in enumerate((nothing, nothing, first), start=1):
        rule(weights, state, rows, g[:, None], lr, step)
        own.step(dense, dense, torch.from_numpy(g), slice(0, 4), lr, step)
        if g is nothing:
            assert weights[:, 0] == pytest.approx(begin, rel=1e-5)
    strength = (hyper.beta + np.abs(first)) / lr + hyper.weight_decay
    due = np.where(begin == 0, 0.0 if hyper.l1 else -first / strength, begin - first / strength)
    assert weights[:, 0] == pytest.approx(due, rel=1e-4, abs=1e-6)
    assert dense.numpy() == pytest.approx(due, rel=1e-4, abs=1e-6)


def test_what_was_noted_comes_back() -> None:
    rng = np.random.default_rng(7)
    weights, state = rng.normal(size=(9, 2)), rng.normal(size=(9, 2, 2))
    weights, state = weights.astype(np.float32), state.astype(np.float32)
    before = weights.copy(), state.copy()
    rows = np.array([7, 0, 3], np.int64)
    ids_, noted = np.empty(5, np.int64), np.empty((5, 6), np.float32)
    sparse.note(weights, state, rows, ids_, noted)
    weights[rows], state[rows] = -1, -2
    sparse.unnote(weights, state, ids_[:3], noted)
    assert (weights == before[0]).all()
    assert (state == before[1]).all()


@given(st.lists(st.integers(0, 200), unique=True, max_size=40))
def test_stripes_have_every_row_once(rows: list[int]) -> None:
    those = np.array(rows, np.int64)
    values = those[:, None].astype(np.float32) * 2
    ends, ids_ = np.empty(9, np.int64), np.empty_like(those)
    out = np.empty_like(values)
    sparse.striped(those, values, 8, ends, ids_, out)
    assert sorted(ids_.tolist()) == sorted(rows)
    assert (out[:, 0] == ids_ * 2).all()
    for stripe in range(8):
        assert (ids_[ends[stripe] : ends[stripe + 1]] % 8 == stripe).all()


def test_used_rows_are_those_with_anything() -> None:
    weights, state = np.zeros((50, 2), np.float32), np.zeros((50, 1, 2), np.float32)
    weights[[3, 40], 1] = 1
    state[21, 0, 0] = 1
    assert sparse.used(weights, state, 0, 50, 0, 1).tolist() == [3, 21, 40]
    assert sparse.used(weights, state, 0, 50, 1, 4).tolist() == [21]
    weights[:] = 1
    assert sparse.used(weights, state, 0, 50, 2, 3).tolist() == list(range(2, 50, 3))
    assert sparse.used(weights, state, 9, 20, 2, 3).tolist() == [11, 14, 17]


@given(
    touched=st.sets(st.integers(0, 99)),
    width=st.integers(1, 4),
    span=st.tuples(st.integers(0, 100), st.integers(0, 100)),
    stripes=st.integers(1, 20),
    data=st.data(),
)
def test_rows_that_lie_together_are_found_as_others_are(
    touched: set[int],
    width: int,
    span: tuple[int, int],
    stripes: int,
    data: st.DataObject,
) -> None:
    whole = np.zeros((100, width), np.float32)
    for row in touched:
        whole[row, data.draw(st.integers(0, width - 1))] = 1e-45  # the smallest there is
    begin, end = min(span), max(span)
    which = data.draw(st.integers(0, stripes - 1)), stripes
    words = whole.reshape(-1).view(np.uint32)
    state = whole[:, 1:, None]
    found = sparse.used_together(words, width, begin, end, *which)
    assert found.tolist() == sparse.used(whole[:, :1], state, begin, end, *which).tolist()
    assert found.tolist() == sorted(
        row for row in touched if begin <= row < end and row % stripes == which[0]
    )


@pytest.mark.parametrize("rows", [1, 700])
def test_the_loss_of_many_is_that_of_each(rows: int) -> None:
    """With far scores, too."""
    rng = np.random.default_rng(5)
    table = np.zeros((9, 1), np.float32)
    table[:, 0] = rng.normal(size=9) * 30
    entries = SparseRows(
        torch.from_numpy(rng.integers(0, 9, rows).astype(np.int32)), torch.arange(rows + 1)
    )
    labels = rng.integers(0, 2, rows).astype(np.float32)
    descend = RowRule("sgd", Hyper()).descending(table, 0.0, 1)
    loss, *_ = descend(*entries.located(), labels, np.float32(0), np.float32(1))
    z = torch.from_numpy(table[entries.ids.numpy(), 0])
    apart = torch.nn.functional.binary_cross_entropy_with_logits(
        z, torch.from_numpy(labels), reduction="sum"
    )
    assert loss == pytest.approx(apart.item(), rel=1e-5)


@pytest.mark.parametrize("longer", [1, 9])
def test_a_row_beyond_the_table_is_not_touched(longer: int) -> None:
    """Nor is it read; whoever asked is told."""
    table = np.zeros((4, 2), np.float32)
    entries = SparseRows(
        torch.tensor([1, 2, 3, 4, 0], dtype=torch.int32), torch.tensor([0, 2, 4, 5])
    )
    labels = np.ones(3, np.float32)
    descend = RowRule("adagrad", Hyper()).descending(table, 0.1, 1)
    for least in (4, 2**32 - 1):
        *_, highest = descend(*entries.located(), labels, np.float32(0), np.float32(1))
        assert highest == least
        assert not table.any()
        entries.ids[-2] = -1
