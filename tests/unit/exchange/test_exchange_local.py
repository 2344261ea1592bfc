"""A worker that exchanges nothing: by compiled loops it has, to the bit, what it has without."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from paceline.exchange.base import Gradient, Post
from paceline.exchange.local import Local
from paceline.exchange.replica import Replica
from paceline.kernels.load import Kernels, kernels
from paceline.server.rules import Hyper


def trained(rule: str, how: Kernels | None, used: tuple[bool, ...]) -> list[float]:
    torch.manual_seed(0)
    layers = [nn.Linear(7, 5), nn.Linear(7, 3), nn.Linear(7, 1)]
    replica = Replica(nn.ModuleList(layers))
    local = Local(Post(index=0, workers=1, rule=rule, hyper=Hyper(), kernels=how))
    local.start(replica)
    for lr in (0.1, 0.05, 0.3):
        x = torch.randn(4, 7)
        sum(
            layer(x).square().mean() for layer, is_ in zip(layers, used, strict=True) if is_
        ).backward()
        local.step(Gradient(4, 4, lr, False), lambda: 0.0)
    return replica.flat.tolist()


@pytest.mark.parametrize("rule", ["sgd", "momentum", "lamb"])
@pytest.mark.parametrize("used", [(True, True, True), (True, False, True)], ids=["all", "some"])
def test_by_either_way(rule: str, used: tuple[bool, ...]) -> None:
    assert kernels(True) is not None
    assert trained(rule, kernels(True), used) == trained(rule, None, used)
