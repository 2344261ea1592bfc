"""Plain SGD by compiled loops: to the bit what torch does in more passes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from paceline.kernels.load import Kernels, kernels
from paceline.server.catalog import RULES
from paceline.server.descent import Descent, descent, pour
from paceline.server.rules import CHUNK, Hyper, make_rule
from paceline.server.table import Table

FUSED = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")  # torch rounds once, too


def loops() -> Kernels:
    found = kernels(True)
    assert found is not None, "LLVM compiles nothing on this machine"
    return found


def by_loops(longest: int = 100) -> Descent:
    found = descent(loops(), make_rule("sgd", longest, Hyper()), longest)
    assert found is not None
    return found


def step(new: Tensor, old: Tensor, grad: Tensor, lr: float, how: str = "step") -> None:
    at = new.data_ptr(), old.data_ptr(), grad.data_ptr()
    getattr(by_loops(), how)(*at, lr, new.numel())


def same(found: Tensor, expected: Tensor) -> None:
    bit_for_bit = {"rtol": 0.0, "atol": 0.0}
    torch.testing.assert_close(
        found, expected, equal_nan=True, **bit_for_bit if FUSED else {"rtol": 1e-6, "atol": 1e-6}
    )


@settings(deadline=None, max_examples=200)
@given(
    size=st.one_of(st.integers(1, 70), st.sampled_from([7_850, CHUNK + 3])),
    weights=st.lists(st.sampled_from([0.0, 1.0, 3.0, 64.0, 200.0]), max_size=5),
    lr=st.floats(1e-6, 10.0),
    scale=st.sampled_from([1e-30, 1.0, 1e30]),
    seed=st.integers(0, 999),
)
def test_a_table_has_the_same_by_either_way(
    size: int, weights: list[float], lr: float, scale: float, seed: int
) -> None:
    made = torch.Generator().manual_seed(seed)
    grads = torch.randn(max(1, len(weights)), size, generator=made) * scale
    start = torch.randn(1, size, generator=made)
    found, expected = (
        Table(start.clone(), grads, make_rule("sgd", size, Hyper()), kernels=how)
        for how in (loops(), None)
    )
    for _ in range(2):
        for table in (found, expected):
            table.apply(list(enumerate(weights)), lr, 0)
    same(found.slot(0), expected.slot(0))
    assert found.version == expected.version == 2


@settings(deadline=None, max_examples=50)
@given(size=st.integers(1, 40), chunk=st.integers(1, 9), first=st.integers(0, 3))
def test_chunk_by_chunk_from_where_another_was(size: int, chunk: int, first: int) -> None:
    chunks = [slice(a, min(a + chunk, size)) for a in range(0, size, chunk)]
    first = min(first, len(chunks) - 1)
    grads, start = torch.randn(2, size), torch.randn(1, size)
    told: list[list[int]] = [[], []]
    tables = []
    for how, before in zip((loops(), None), told, strict=True):
        rule = make_rule("sgd", size, Hyper())
        tables.append(Table(start.clone(), grads, rule, chunks, kernels=how))
        tables[-1].apply([(0, 3.0), (1, 1.0)], 0.1, 0, first, before.append)
    same(tables[0].slot(0), tables[1].slot(0))
    assert told[0] == told[1] == list(range(first, len(chunks)))


@settings(deadline=None, max_examples=100)
@given(size=st.integers(1, 70), lr=st.floats(-1.0, 1.0), in_place=st.booleans())
def test_a_step_is_torchs(size: int, lr: float, in_place: bool) -> None:
    old, grad = torch.randn(2, size)
    expected = torch.add(old, grad, alpha=-lr)
    new = old if in_place else torch.full((size,), torch.nan)
    step(new, old, grad, lr)
    same(new, expected)


@settings(deadline=None, max_examples=200)
@given(size=st.integers(0, 100), at=st.tuples(*[st.integers(0, 20)] * 3), lr=st.floats(-1.0, 1.0))
def test_past_the_cache_wherever_it_lies(size: int, at: tuple[int, int, int], lr: float) -> None:
    """And nothing beside it is written."""
    around = torch.randn(3, 160)
    before = around.clone()
    new, old, grad = (row[begin : begin + size] for row, begin in zip(around, at, strict=True))
    step(new, old, grad, lr, "stream")
    before[0, at[0] : at[0] + size] = torch.add(old, grad, alpha=-lr)
    same(around, before)


@settings(deadline=None, max_examples=200)
@given(size=st.integers(0, 100), at=st.tuples(*[st.integers(0, 20)] * 2))
def test_a_copy_past_the_cache_wherever_it_lies(size: int, at: tuple[int, int]) -> None:
    """And nothing beside it is written."""
    around = torch.randn(2, 160)
    before = around.clone()
    new, old = (row[begin : begin + size] for row, begin in zip(around, at, strict=True))
    pour(loops(), new.data_ptr(), old.data_ptr(), size)
    before[0, at[0] : at[0] + size] = old
    same(around, before)


def test_what_is_not_a_number_stays_so() -> None:
    old, grad = torch.zeros(4), torch.tensor([torch.nan, torch.inf, -torch.inf, 1.0])
    step(old, old, grad, 1.0)
    same(old, torch.tensor([torch.nan, -torch.inf, torch.inf, -1.0]))


def test_only_memory_of_its_own_is_written() -> None:
    around = torch.zeros(40)
    step(around[8:29], around[8:29], torch.ones(21), 1.0)
    assert around.nonzero().flatten().tolist() == list(range(8, 29))


@pytest.mark.parametrize("rule", sorted(set(RULES) - {"sgd"}))
def test_other_rules_are_torchs(rule: str) -> None:
    assert descent(loops(), make_rule(rule, 10, Hyper()), 10) is None
    assert descent(loops(), make_rule("sgd", 10, Hyper(weight_decay=0.1)), 10) is None
