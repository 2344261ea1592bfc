"""The rules that take each parameter by itself do step for step what torch.optim does."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
import torch
from torch import Tensor

from paceline.errors import UnknownName
from paceline.server.catalog import LAYERWISE, RULES
from paceline.server.rules import CHUNK, Hyper, Rule, chunks, make_rule

SIZE = 257
STEPS = 20
RATE = 0.05

Maker = Callable[[Iterable[Tensor], float], torch.optim.Optimizer]

TORCH: dict[str, Maker] = {
    "sgd": lambda p, wd: torch.optim.SGD(p, lr=RATE, weight_decay=wd),
    "momentum": lambda p, wd: torch.optim.SGD(p, lr=RATE, momentum=0.9, weight_decay=wd),
    "nesterov": lambda p, wd: torch.optim.SGD(
        p, lr=RATE, momentum=0.9, nesterov=True, weight_decay=wd
    ),
    "adagrad": lambda p, wd: torch.optim.Adagrad(p, lr=RATE, weight_decay=wd),
    "adam": lambda p, wd: torch.optim.Adam(p, lr=RATE, weight_decay=wd),
    "adamw": lambda p, wd: torch.optim.AdamW(p, lr=RATE, weight_decay=wd),
}


def gradients(seed: int) -> list[Tensor]:
    make = torch.Generator().manual_seed(seed)
    return [torch.randn(SIZE, generator=make) for _ in range(STEPS)]


def by_torch(name: str, decay: float, start: Tensor, grads: list[Tensor]) -> list[Tensor]:
    parameter = torch.nn.Parameter(start.clone())
    optimizer = TORCH[name]([parameter], decay)
    seen = []
    for grad in grads:
        parameter.grad = grad.clone()
        optimizer.step()
        seen.append(parameter.detach().clone())
    return seen


def by_rule(rule: Rule, start: Tensor, grads: list[Tensor], parts: list[slice]) -> list[Tensor]:
    values = start.clone()
    seen = []
    for t, grad in enumerate(grads, start=1):
        rule.update([(values[at], values[at], grad[at], at) for at in parts], RATE, t)
        seen.append(values.clone())
    return seen


def test_every_rule_of_the_catalog_is_compared() -> None:
    others = {"ftrl"}  # tests/unit/kernels/test_kernels_sparse.py, beside the one for rows
    assert TORCH.keys() == RULES.keys() - LAYERWISE - others


@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("name", TORCH)
def test_each_step_is_torchs(name: str, decay: float) -> None:
    start, grads = torch.randn(SIZE, generator=torch.Generator().manual_seed(1)), gradients(2)
    ours = by_rule(make_rule(name, SIZE, Hyper(weight_decay=decay)), start, grads, [slice(0, SIZE)])
    for step, (mine, theirs) in enumerate(
        zip(ours, by_torch(name, decay, start, grads), strict=True), start=1
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-6, msg=f"step {step}")


@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("name", RULES)
def test_chunks_give_what_the_whole_range_gives(name: str, decay: float) -> None:
    start, grads = torch.randn(SIZE, generator=torch.Generator().manual_seed(3)), gradients(4)
    hyper = Hyper(weight_decay=decay)
    whole = by_rule(make_rule(name, SIZE, hyper), start, grads, [slice(0, SIZE)])
    parts = [slice(0, 1), slice(1, 100), slice(100, 101), slice(101, SIZE)]
    cut = by_rule(make_rule(name, SIZE, hyper), start, grads, parts)
    # Only the last bits may differ: torch computes the ends of a range without vectors, and a
    # layer's norm is added up from those of its chunks.
    bits = 1e-6 if name in LAYERWISE else 1e-7
    torch.testing.assert_close(cut[-1], whole[-1], rtol=1e-6, atol=bits)


@pytest.mark.parametrize("name", RULES)
def test_a_new_version_beside_the_old_one_leaves_the_old_one(name: str) -> None:
    start, grads = torch.randn(SIZE, generator=torch.Generator().manual_seed(5)), gradients(6)
    in_place = by_rule(make_rule(name, SIZE, Hyper()), start, grads, [slice(0, SIZE)])
    rule = make_rule(name, SIZE, Hyper())
    old, new = start.clone(), torch.full((SIZE,), torch.nan)
    for t, grad in enumerate(grads, start=1):
        before = old.clone()
        rule.update([(new, old, grad, slice(0, SIZE))], RATE, t)
        assert torch.equal(old, before)
        old, new = new, old
    assert torch.equal(old, in_place[-1])


@pytest.mark.parametrize("name", RULES)
def test_the_gradient_is_only_read(name: str) -> None:
    """It may lie in a worker's own shared memory, or be a layer's gradient."""
    rule = make_rule(name, SIZE, Hyper(weight_decay=0.1))
    grad = gradients(7)[0]
    before = grad.clone()
    values = torch.ones(SIZE)
    rule.update([(values, values, grad, slice(0, SIZE))], RATE, 1)
    assert torch.equal(grad, before)


def test_hyper_takes_what_it_knows() -> None:
    assert Hyper.of({"momentum": 0.5, "strategy": "single"}) == Hyper(momentum=0.5)


def test_an_unknown_rule_is_told_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"did you mean 'adam'.*adagrad"):
        make_rule("adm", 1, Hyper())


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 0), (0, 1), (5, CHUNK + 5), (3, 3 * CHUNK), (0, 2 * CHUNK + 1)]
)
def test_chunks_cover_a_range_once(start: int, stop: int) -> None:
    covered = [at for chunk in chunks(start, stop) for at in range(chunk.start, chunk.stop)]
    assert covered == list(range(start, stop))
    assert all(chunk.stop - chunk.start <= CHUNK for chunk in chunks(start, stop))
