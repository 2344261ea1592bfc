"""A loop of one's own under every strategy."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from own_loop_script import BATCH, SAMPLES, make_optimizer, parts
from torch import Tensor, nn

from paceline.api import Run, launch_script
from paceline.errors import RunFailed, SpecError, TaskError
from paceline.spec import RunSpec

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "own_loop.py"
SCRIPT = HERE / "own_loop_script.py"

# One transport for each strategy is enough: a script's gradients take the same way as a task's.
CREWS: list[dict[str, Any]] = [
    {"strategy": "single"},
    {"strategy": "independent", "workers": 2},
    {"strategy": "allreduce", "workers": 2},
    {"strategy": "ps-sync", "workers": 2, "transport": "shm", "servers": 2},
    {"strategy": "ps-sync", "workers": 2, "transport": "tcp", "servers": 2},
    {"strategy": "ps-async", "workers": 2, "transport": "tcp", "servers": 2},
    {"strategy": "ssp", "workers": 2, "transport": "shm", "bound": 2},
    {"strategy": "local-sgd", "workers": 2, "transport": "tcp", "sync_every": 7},
    {"strategy": "ps-sync", "workers": 3, "transport": "shm", "backup": 1},
    {"strategy": "hogwild", "workers": 2},
]


def named(crew: dict[str, Any]) -> str:
    return "-".join(map(str, crew.values()))


def launched(script: Path, out: Path, *arguments: str, **crew: Any) -> Run:
    spec = RunSpec(task=f"<python>:{script.name}", **crew)
    return launch_script(spec, script, list(arguments), out=out, echo=None)


def test_shares_of_a_loop_of_ones_own_are_not_ours_to_balance(runs: Path) -> None:
    with pytest.raises(SpecError, match=r"--balance: a script takes its batches itself"):
        launched(EXAMPLE, runs, strategy="allreduce", workers=2, balance=True)
    assert not runs.exists()


@pytest.mark.thorough
@pytest.mark.parametrize("crew", CREWS, ids=named)
def test_the_example_trains(crew: dict[str, Any], runs: Path) -> None:
    run = launched(EXAMPLE, runs, **crew)
    assert run.status == "done"
    printed = run.folder.log_path("worker-0").read_text()
    assert "epoch 3" in printed
    assert float(printed.split("accuracy")[-1]) > 0.85
    workers = [role for role in run.roles if role["role"].startswith("worker-")]
    rounds = 3 * -(-4000 // (50 * len(workers)))
    used = sum(role["samples"] for role in workers)
    if "backup" in crew:  # a round goes without one of them, and what is late is not used
        assert used >= rounds * 50
        assert run.roles[-1]["steps"] == rounds
    else:
        assert used == 3 * 4000
    assert run.parameters().keys() == {"0.weight", "0.bias", "2.weight", "2.bias"}


def test_the_example_trains_without_paceline_around_it(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert float(capsys.readouterr().out.split("accuracy")[-1]) > 0.85


def by_hand(name: str, workers: int, epochs: int) -> dict[str, Tensor]:
    """Plain torch: each worker's gradient on its own batch, averaged, one optimizer step."""
    x, y, model = parts()
    optimizer = make_optimizer(name, model)
    for _ in range(epochs):
        for begin in range(0, SAMPLES // workers, BATCH):
            optimizer.zero_grad()
            for worker in range(workers):
                rows = torch.arange(worker, SAMPLES, workers)[begin : begin + BATCH]
                loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
                (loss / workers).backward()
            optimizer.step()
    return model.state_dict()


@pytest.mark.matrix(2)
@pytest.mark.parametrize(
    ("crew", "optimizer"),
    [(CREWS[2], "momentum"), (CREWS[3], "adam"), (CREWS[4], "momentum"), (CREWS[4], "adam")],
    ids=lambda value: named(value) if isinstance(value, dict) else value,
)
def test_in_step_is_plain_torch_with_averaged_gradients(
    crew: dict[str, Any], optimizer: str, runs: Path
) -> None:
    run = launched(SCRIPT, runs, "4", optimizer, **crew)
    expected = by_hand(optimizer, 2, 4)
    for name, value in run.parameters().items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_averaged_each_step_own_momentum_is_as_good_as_shared(transport: str, runs: Path) -> None:
    """Descent with momentum is linear: the mean of the workers' is that of the mean gradient."""
    crew = {"strategy": "local-sgd", "workers": 2, "transport": transport, "sync_every": 1}
    run = launched(SCRIPT, runs, "4", "momentum", **crew)
    expected = by_hand("momentum", 2, 4)
    for name, value in run.parameters().items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-5)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("strategy", ["single", "hogwild", "local-sgd"])
def test_alone_it_is_plain_torch(strategy: str, runs: Path) -> None:
    run = launched(SCRIPT, runs, "4", "momentum", strategy=strategy)
    expected = by_hand("momentum", 1, 4)
    for name, value in run.parameters().items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-6)


def script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "script.py"
    path.write_text(text)
    return path


def test_a_script_that_shares_nothing_is_told(tmp_path: Path, runs: Path) -> None:
    with pytest.raises(TaskError, match=r"'script.py' ended without calling paceline.parallel"):
        launched(script(tmp_path, "print('hello')"), runs, strategy="allreduce", workers=2)


def test_a_script_that_fails_names_the_worker_and_the_line(tmp_path: Path, runs: Path) -> None:
    text = "import torch, paceline\nvalue = {}\nvalue['missing']\n"
    with pytest.raises(RunFailed, match=r"worker-\d failed with KeyError.*script\.py, line 3"):
        launched(script(tmp_path, text), runs, strategy="allreduce", workers=2)


def test_a_script_that_exits_badly_is_told(tmp_path: Path, runs: Path) -> None:
    with pytest.raises(TaskError, match=r"script\.py.*ended with 3"):
        launched(script(tmp_path, "import sys\nsys.exit(3)\n"), runs)


def test_an_optimizer_servers_do_not_know_is_told(tmp_path: Path, runs: Path) -> None:
    text = (
        "import torch, paceline\n"
        "model = torch.nn.Linear(2, 2)\n"
        "paceline.parallel(model, torch.optim.RMSprop(model.parameters()))\n"
    )
    with pytest.raises(TaskError, match="no rule like RMSprop"):
        launched(script(tmp_path, text), runs, strategy="ps-async", workers=2)
