"""LARS and LAMB: step for step what their papers say, wherever chunks and shards are cut."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from paceline.server import elementwise
from paceline.server.catalog import LAYERWISE
from paceline.server.rules import Hyper, Layers, make_rule
from paceline.server.shards import cut
from paceline.server.table import Table

STEPS = 12
# LARS scales its rate by 0.001: so that both move the parameters visibly in every step.
RATES = {"lars": 5.0, "lamb": 0.02}
rules = pytest.mark.parametrize("name", sorted(LAYERWISE))
decays = pytest.mark.parametrize("decay", [0.0, 0.01])


def lars(
    layers: list[Tensor], grads: list[list[Tensor]], rate: float, hyper: Hyper
) -> list[Tensor]:
    """Algorithm 1 of arxiv.org/abs/1708.03888, a layer at a time."""
    layers = [w.clone() for w in layers]
    buffers = [torch.zeros_like(w) for w in layers]
    seen = []
    for step in grads:
        for w, v, g in zip(layers, buffers, step, strict=True):
            trust = 1.0
            if w.norm() > 0 and g.norm() > 0:
                trust = 0.001 * w.norm() / (g.norm() + hyper.weight_decay * w.norm())
            v.copy_(hyper.momentum * v + rate * trust * (g + hyper.weight_decay * w))
            w.sub_(v)
        seen.append(torch.cat(layers))
    return seen


def lamb(
    layers: list[Tensor], grads: list[list[Tensor]], rate: float, hyper: Hyper
) -> list[Tensor]:
    """Algorithm 2 of arxiv.org/abs/1904.00962, with the identity for φ."""
    layers = [w.clone() for w in layers]
    firsts = [torch.zeros_like(w) for w in layers]
    seconds = [torch.zeros_like(w) for w in layers]
    seen = []
    for t, step in enumerate(grads, start=1):
        for w, m, v, g in zip(layers, firsts, seconds, step, strict=True):
            m.copy_(hyper.beta1 * m + (1 - hyper.beta1) * g)
            v.copy_(hyper.beta2 * v + (1 - hyper.beta2) * g * g)
            m_hat, v_hat = m / (1 - hyper.beta1**t), v / (1 - hyper.beta2**t)
            u = m_hat / (v_hat.sqrt() + 1e-6) + hyper.weight_decay * w
            trust = w.norm() / u.norm() if w.norm() > 0 and u.norm() > 0 else 1.0
            w.sub_(rate * trust * u)
        seen.append(torch.cat(layers))
    return seen


PAPERS = {"lars": lars, "lamb": lamb}


class Case:
    """Layers of these sizes, gradients for some steps, and what the paper makes of them."""

    def __init__(self, name: str, sizes: list[int], decay: float, seed: int = 0) -> None:
        make = torch.Generator().manual_seed(seed)
        self.name, self.sizes, self.rate = name, tuple(sizes), RATES[name]
        self.hyper = Hyper(weight_decay=decay)
        # Layers of different scales, so that a ratio of the wrong layer would show.
        scales = [10.0 ** (index % 4 - 2) for index in range(len(sizes))]
        layers = [s * torch.randn(n, generator=make) for n, s in zip(sizes, scales, strict=True)]
        steps = [
            [torch.randn(n, generator=make) / s for n, s in zip(sizes, scales, strict=True)]
            for _ in range(STEPS)
        ]
        self.start = self.last = torch.cat(layers)
        self.grads = [torch.cat(step) for step in steps]
        self.expected = PAPERS[name](
            [w.double() for w in layers],
            [[g.double() for g in step] for step in steps],
            self.rate,
            self.hyper,
        )

    def check(self, step: int, values: Tensor) -> None:
        """The step from where the rule was: what float32 loses adds up where values cancel out."""
        before = self.expected[step - 1] if step else self.start.double()
        due = self.last.double() + (self.expected[step] - before)
        torch.testing.assert_close(
            values.double(), due, rtol=1e-6, atol=1e-6, msg=f"step {step + 1}"
        )
        self.last = values.clone()


@rules
@decays
@settings(max_examples=10, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any),
    chunk=st.integers(1, 30),
    seed=st.integers(0, 99),
)
def test_each_step_is_the_papers(
    name: str, decay: float, sizes: list[int], chunk: int, seed: int
) -> None:
    """In place, in chunks that lie across layers however they like."""
    case = Case(name, sizes, decay, seed)
    rule = make_rule(name, len(case.start), case.hyper, layers=Layers(case.sizes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elementwise, "CHUNK", chunk)
        parts = rule.chunks()
    values = case.start.clone()
    for step, grad in enumerate(case.grads):
        rule.update([(values[at], values[at], grad[at], at) for at in parts], case.rate, step + 1)
        case.check(step, values)


@rules
@decays
def test_a_layer_of_many_chunks(name: str, decay: float) -> None:
    """Norms of a hundred thousand numbers, to 1e-6 still."""
    case = Case(name, [7, elementwise.CHUNK + 5, 100_000], decay)
    rule = make_rule(name, len(case.start), case.hyper, layers=Layers(case.sizes))
    table = Table(torch.stack([case.start, case.start]), torch.stack(case.grads), rule)
    for step in range(STEPS):
        table.apply([(step, 3.0)], case.rate, into=(step + 1) % 2)
        values = table.slot(table.current)
        case.check(step, values)
        torch.testing.assert_close(values.double(), case.expected[step], rtol=1e-6, atol=1e-6)


@rules
@decays
@settings(max_examples=10, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    shards=st.integers(1, 6),
    chunk=st.integers(1, 30),
)
def test_shards_that_cut_layers_are_the_whole(
    name: str, decay: float, sizes: list[int], shards: int, chunk: int
) -> None:
    """Each measures what it has of every layer; the sums are those of whole layers."""
    case = Case(name, sizes, decay)
    size = len(case.start)
    squares = torch.full((shards, 2, len(sizes)), torch.nan, dtype=torch.float64)
    slots, grads = case.start.clone()[None], torch.empty(2, size)
    tables = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elementwise, "CHUNK", chunk)
        for shard, (a, b) in enumerate(cut(size, shards)):
            layers = Layers(case.sizes, a, squares, shard)
            rule = make_rule(name, b - a, case.hyper, layers=layers)
            tables.append(Table(slots[:, a:b], grads[:, a:b], rule))
    pushes = [(0, 2.0), (1, 2.0)]
    for step, grad in enumerate(case.grads):
        grads[0], grads[1] = 0.5 * grad, 1.5 * grad  # in the mean, the gradient
        for table in tables:
            table.measure(pushes, 0)
        for table in tables:
            table.apply(pushes, case.rate, 0)
        case.check(step, slots[0])


@rules
def test_a_round_of_no_samples_between_shards_changes_nothing(name: str) -> None:
    squares = torch.zeros(2, 2, 1, dtype=torch.float64)
    slots, grads = torch.ones(1, 6), torch.full((1, 6), torch.nan)
    tables = [
        Table(
            slots[:, a:b],
            grads[:, a:b],
            make_rule(name, b - a, Hyper(), layers=Layers((6,), a, squares, shard)),
        )
        for shard, (a, b) in enumerate(cut(6, 2))
    ]
    for table in tables:
        table.measure([(0, 0.0)], 0)
    for table in tables:
        table.apply([(0, 0.0)], 1.0, 0)
    assert torch.equal(slots, torch.ones(1, 6))


@pytest.mark.parametrize("sizes", [(5,), (3, 0, 9), (1, 1, 1), (0, 7, 30, 2, 0)])
@pytest.mark.parametrize("shards", [1, 2, 5])
def test_chunks_cover_the_range_and_cross_no_layers_border(
    sizes: tuple[int, ...], shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elementwise, "CHUNK", 4)
    borders = list(pairwise(accumulate(sizes, initial=0)))
    covered = []
    for a, b in cut(sum(sizes), shards):
        for at in make_rule("lars", b - a, Hyper(), layers=Layers(sizes, a)).chunks():
            first, last = a + at.start, a + at.stop
            assert 0 < last - first <= 4
            assert sum(low <= first and last <= high for low, high in borders) == 1
            covered += range(first, last)
    assert covered == list(range(sum(sizes)))


@rules
def test_a_layer_that_is_zero_takes_a_plain_step(name: str) -> None:
    """And leaves: otherwise it would stay zero for good."""
    rule = make_rule(name, 4, Hyper(), layers=Layers((2, 2)))
    values, grad = torch.tensor([0.0, 0.0, 3.0, 4.0]), torch.tensor([0.5, -2.0, 0.0, 0.0])
    parts = [(values[at], values[at], grad[at], at) for at in rule.chunks()]
    rule.update(parts, 0.1, 1)
    plain = 0.1 * (grad if name == "lars" else grad.sign())
    torch.testing.assert_close(values, torch.tensor([0.0, 0.0, 3.0, 4.0]) - plain)


@rules
def test_a_layer_without_a_gradient_is_left_alone(name: str) -> None:
    rule = make_rule(name, 6, Hyper(weight_decay=0.1), layers=Layers((3, 3)))
    values, grad = torch.ones(6), torch.ones(6)
    at = rule.chunks()[1]
    rule.update([(values[at], values[at], grad[at], at)], 0.1, 1)
    assert torch.equal(values[:3], torch.ones(3))
    assert (values[3:] < 1).all()
    rule.update([], 0.1, 2)
