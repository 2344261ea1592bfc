"""A server's rule in place of a user's optimizer: the same steps, or a refusal that says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop

from paceline.errors import TaskError
from paceline.server.rules import Hyper, make_rule
from paceline.worker.optimizers import rule_of

RATE = 0.05
SIZE = 40

Maker = Callable[[list[nn.Parameter]], Optimizer]

KNOWN: dict[str, Maker] = {
    "sgd": lambda p: SGD(p, lr=RATE),
    "sgd with decay": lambda p: SGD(p, lr=RATE, weight_decay=0.1),
    "momentum": lambda p: SGD(p, lr=RATE, momentum=0.7),
    "nesterov": lambda p: SGD(p, lr=RATE, momentum=0.7, nesterov=True, weight_decay=0.1),
    "adam": lambda p: Adam(p, lr=RATE),
    "adam, all different": lambda p: Adam(p, lr=RATE, betas=(0.7, 0.9), eps=1e-3, weight_decay=0.1),
    "adam with decoupled decay": lambda p: Adam(
        p, lr=RATE, weight_decay=0.1, decoupled_weight_decay=True
    ),
    "adamw": lambda p: AdamW(p, lr=RATE),
    "adamw, all different": lambda p: AdamW(
        p, lr=RATE, betas=(0.7, 0.9), eps=1e-3, weight_decay=0.2
    ),
    "adagrad": lambda p: Adagrad(p, lr=RATE),
    "adagrad, all different": lambda p: Adagrad(p, lr=RATE, eps=1e-2, weight_decay=0.1),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_rule_does_what_the_optimizer_does(name: str) -> None:
    make = torch.Generator().manual_seed(0)
    parameter = nn.Parameter(torch.randn(SIZE, generator=make))
    values = parameter.detach().clone()
    optimizer = KNOWN[name]([parameter])
    kind, hyper = rule_of(optimizer)
    rule = make_rule(kind, SIZE, Hyper.of(hyper))
    for t in range(1, 21):
        grad = torch.randn(SIZE, generator=make)
        parameter.grad = grad.clone()
        optimizer.step()
        rule.step(values, values, grad, slice(0, SIZE), RATE, t)
        torch.testing.assert_close(values, parameter.detach(), rtol=1e-5, atol=1e-6)


class Own(SGD):
    """What it does is anybody's guess."""


REFUSED: dict[str, tuple[Maker, str]] = {
    "another kind": (RMSprop, "RMSprop"),
    "a subclass": (lambda p: Own(p, lr=RATE), "Own"),
    "amsgrad": (lambda p: Adam(p, amsgrad=True), "Adam with amsgrad"),
    "maximize": (lambda p: SGD(p, lr=RATE, maximize=True), "SGD with maximize"),
    "dampening": (lambda p: SGD(p, lr=RATE, momentum=0.9, dampening=0.1), "SGD with dampening"),
    "rate decay": (lambda p: Adagrad(p, lr_decay=0.1), "Adagrad with lr_decay"),
    "a head start": (
        lambda p: Adagrad(p, initial_accumulator_value=0.1),
        "Adagrad with initial_accumulator_value",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_rule_does_is_refused_with_a_remedy(name: str) -> None:
    make, text = REFUSED[name]
    with pytest.raises(TaskError, match=rf"no rule like {text}.*allreduce"):
        rule_of(make([nn.Parameter(torch.zeros(1))]))


def test_groups_that_differ_are_refused() -> None:
    one, two = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    alike = SGD([{"params": [one]}, {"params": [two]}], lr=RATE)
    assert rule_of(alike)[0] == "sgd"
    apart = SGD([{"params": [one]}, {"params": [two], "lr": 1.0}], lr=RATE)
    with pytest.raises(TaskError, match="groups differ"):
        rule_of(apart)
