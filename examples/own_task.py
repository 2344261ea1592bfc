"""A task of one's own: `paceline run --task examples/own_task.py:TwoMoons --workers 2`."""

import torch
from torch import nn

import paceline


class TwoMoons(paceline.Task):
    epochs, lr = 5, 0.5

    def model(self):
        return nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 2))

    def data(self):
        angle = torch.linspace(0, 3.1416, 3000)
        upper = torch.stack([angle.cos(), angle.sin()], 1)
        lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], 1)
        x = torch.cat([upper, lower]) + 0.1 * torch.randn(6000, 2)
        y = torch.arange(2).repeat_interleave(3000)
        order = torch.randperm(6000)
        train, test = order[:5000], order[5000:]
        return paceline.Data(
            train=paceline.Arrays(x[train], y[train]), test=paceline.Arrays(x[test], y[test])
        )
