"""`local-sgd` is N plain loops whose parameters are averaged, or stepped on average, now and then.

Over either transport, to 1e-5.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from contract_tasks import Net
from torch import Tensor, nn

import paceline
from paceline.data.sampler import Order, slices

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

SEED, BATCH, STEPS = 3, 8, 25
DILOCO = {"outer_lr": 0.7, "outer_momentum": 0.9}
INNER: dict[str, Any] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1),
}


def trained(runs: Path, samples: int, **how: Any) -> dict[str, Tensor]:
    how = {"batch": BATCH, **({} if "epochs" in how else {"steps": STEPS}), **how}
    run = paceline.fit(Net(samples), lr=0.1, evaluate="never", seed=SEED, out=runs, **how)
    assert run.status == "done"
    return run.parameters()


def by_hand(
    samples: int,
    workers: int,
    every: int,
    rule: str,
    outer_lr: float = 1.0,
    outer_momentum: float = 0.0,
    epochs: int | None = None,
) -> dict[str, Tensor]:
    """Plain torch, one worker after the other."""
    task, data = Net(samples), Net(samples).data()
    models: list[nn.Module] = []
    for _ in range(workers):
        torch.manual_seed(SEED)
        models.append(task.model())
    shared = nn.Parameter(nn.utils.parameters_to_vector(models[0].parameters()).detach().clone())
    inner = [INNER[rule](model.parameters()) for model in models]
    outer = torch.optim.SGD(
        [shared], lr=outer_lr, momentum=outer_momentum, nesterov=outer_momentum > 0
    )
    lots = [
        list(slices(Order(samples, SEED), BATCH, w, workers, epochs, None if epochs else STEPS))
        for w in range(workers)
    ]
    steps = len(lots[0])
    weights = torch.zeros(workers)
    for step in range(steps):
        for worker, model in enumerate(models):
            rows = lots[worker][step].rows
            if len(rows) == 0:
                continue
            weights[worker] += len(rows)
            inner[worker].zero_grad()
            task.loss(model, data.train.batch(rows)).backward()
            inner[worker].step()
        if (step + 1) % every == 0 or step + 1 == steps:
            flats = [nn.utils.parameters_to_vector(m.parameters()).detach() for m in models]
            drifts = torch.stack([shared.detach() - flat for flat in flats])
            shared.grad = (drifts * (weights / weights.sum())[:, None]).sum(0)
            outer.step()
            weights.zero_()
            for model in models:
                nn.utils.vector_to_parameters(shared.detach().clone(), model.parameters())
    return models[0].state_dict()


def assert_same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=0, atol=1e-5)


@pytest.mark.matrix(5)
@pytest.mark.parametrize(
    ("workers", "samples", "every", "rule", "more"),
    [
        (2, 203, 4, "sgd", {}),  # 25 steps: the last averaging comes after one
        (3, 193, 4, "momentum", {}),  # of an epoch's last round two workers have nothing
        (3, 193, 5, "adam", {}),
        (4, 203, 9, "sgd", {"epochs": 2}),
        (2, 203, 100, "sgd", {}),  # only at the end
        (1, 203, 3, "adam", {}),
        (2, 203, 4, "sgd", DILOCO),
        (3, 193, 3, "adam", DILOCO),
        (1, 203, 5, "sgd", DILOCO),
    ],
    ids=str,
)
def test_it_is_plain_loops_and_averages(
    workers: int, samples: int, every: int, rule: str, more: dict[str, Any], runs: Path
) -> None:
    expected = by_hand(samples, workers, every, rule, **more)
    for transport in ("shm", "tcp"):
        ours = trained(
            runs,
            samples,
            strategy="local-sgd",
            workers=workers,
            sync_every=every,
            optimizer=rule,
            transport=transport,
            **more,
        )
        assert_same(ours, expected)


@pytest.mark.parametrize("samples", [203, 193])
def test_averaged_each_step_it_is_one_worker_with_the_global_batch(
    samples: int, runs: Path
) -> None:
    alone = trained(runs, samples, strategy="single", batch=BATCH * 3, optimizer="sgd")
    for transport in ("shm", "tcp"):
        many = trained(
            runs,
            samples,
            strategy="local-sgd",
            workers=3,
            sync_every=1,
            optimizer="sgd",
            transport=transport,
        )
        assert_same(many, alone)


class One(Net):
    """Fewer parameters than workers."""

    def model(self) -> nn.Module:
        class Scaled(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.scale = nn.Parameter(torch.ones(1))

            def forward(self, x: Tensor) -> Tensor:
                return x[:, :3] * self.scale

        return Scaled()


@pytest.mark.parametrize(
    "crew",
    [
        {"strategy": "local-sgd", "transport": "shm"},
        {"strategy": "local-sgd", "transport": "tcp"},
        {"strategy": "ssp", "transport": "shm"},
        {"strategy": "ps-sync", "backup": 1, "transport": "shm"},
        {"strategy": "hogwild"},
    ],
    ids=lambda crew: "-".join(map(str, crew.values())),
)
def test_a_model_of_one_parameter(crew: dict[str, Any], runs: Path) -> None:
    run = paceline.fit(One(), workers=3, batch=8, epochs=1, out=runs, **crew)
    assert run.status == "done"
    assert run.parameters()["scale"] != 1
