"""A training loop of one's own. The three lines marked make it run on any number of workers:

python examples/own_loop.py
paceline launch -n 2 --strategy ps-async examples/own_loop.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import paceline  # 1

torch.manual_seed(0)
x = torch.randn(4000, 20)
y = (x[:, :5].sum(1) > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

model, optimizer, loader = paceline.parallel(model, optimizer, loader)  # 2 and 3

for epoch in range(3):
    for features, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(features), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}")

right = (model(x).argmax(1) == y).float().mean().item()
print(f"accuracy {right:.3f}")
