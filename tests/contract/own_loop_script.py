"""A loop of one's own whose result can be computed without Paceline. Takes: epochs, optimizer."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import paceline

SAMPLES, BATCH = 96, 8


def parts():
    torch.manual_seed(5)
    x = torch.randn(SAMPLES, 6)
    y = (x.sum(1) > 0).long()
    return x, y, nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


def make_optimizer(name, model):
    if name == "adam":
        return torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=0.01)
    return torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.8, weight_decay=0.01)


def main(epochs, name):
    x, y, model = parts()
    optimizer = make_optimizer(name, model)
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH)
    model, optimizer, loader = paceline.parallel(model, optimizer, loader)
    for _ in range(epochs):
        for features, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
