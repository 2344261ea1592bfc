"""A wide perceptron, for its weight: on MNIST, 20,037,642 parameters."""

from __future__ import annotations

from torch import nn

from paceline.tasks.base import Task
from paceline.tasks.fit import classes_of, features_of

HIDDEN = 4096


class MLP(Task):
    batch = 64
    epochs = 1
    lr = 0.1

    def model(self) -> nn.Module:
        data = self.data()
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(features_of("mlp", data), HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, classes_of("mlp", data)),
        )
