"""Where workers form a process group: one dies, the others form another, and it comes back."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from faults_tools import alive, harm, kill, task

import paceline
from paceline.api import launch_script
from paceline.errors import RoleDied, RunFailed
from paceline.spec import RunSpec
from paceline.store.steps import read_steps

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

BATCH, SAMPLES, EPOCHS = 10, 400, 10
PROMISED = 2.0  # seconds within which the others go on
TWO = {"strategy": "allreduce", "workers": 2}
# As many samples a round, and enough workers that some may be a round ahead of others.
FOUR = {"strategy": "allreduce", "workers": 4, "batch": 5}
AVERAGED = {"strategy": "local-sgd", "transport": "tcp", "workers": 2, "sync_every": 4}


def train(runs: Path, crew: dict[str, Any], *inject: str, **more: Any) -> paceline.Run:
    """Every sample adds 1 to its number in every epoch, whoever has it."""
    fields = {"epochs": EPOCHS, "lr": 20.0, "evaluate": "never", "batch": BATCH, "inject": inject}
    return paceline.fit(task("Counting"), out=runs, **(fields | crew | more))


def all_counted(run: paceline.Run, epochs: int = EPOCHS) -> None:
    """Once an epoch; of other shares it is the same sum but for rounding."""
    assert run.status == "done"
    seen = run.parameters()["seen"]
    torch.testing.assert_close(seen, torch.full_like(seen, epochs), rtol=0, atol=1e-3)


def told(run: paceline.Run, *kinds: str) -> list[tuple[str, str]]:
    events = run.summary["events"]
    return [(event["role"], event["kind"]) for event in events if event["kind"] in kinds]


def longest_pause(run: paceline.Run, role: str) -> float:
    """Seconds between two steps."""
    ends = read_steps(run.folder.steps_path(role))["time"]
    return float(np.max(ends[1:] - ends[:-1]))


@pytest.mark.matrix(2)
@pytest.mark.parametrize(
    ("crew", "role"),
    [(TWO, "worker-0"), (TWO, "worker-1"), (FOUR, "worker-0"), (FOUR, "worker-2")],
    ids=str,
)
def test_a_killed_worker_comes_back(crew: dict[str, Any], role: str, runs: Path) -> None:
    """Worker-0, too, at whose store all have met."""
    with harm(runs, kill(role), role) as watch:
        run = train(runs, crew)
    all_counted(run)
    assert told(run, "died", "back") == [(role, "died"), (role, "back")]
    assert len(told(run, "regrouped")) == 2, "without it, and with it"
    others = {f"worker-{index}" for index in range(crew["workers"])} - {role}
    assert max(longest_pause(run, other) for other in others) < PROMISED
    assert not alive([*watch.pids.values()])
    assert read_steps(run.folder.steps_path(role))["step"][-1] == EPOCHS * SAMPLES // 20


@pytest.mark.matrix(1)
@pytest.mark.parametrize(("role", "step"), [("worker-0", 1), ("worker-1", 1), ("worker-0", 200)])
def test_at_the_first_step_and_at_the_last(role: str, step: int, runs: Path) -> None:
    all_counted(train(runs, TWO, f"kill:{role}@step={step}"))


def test_all_have_the_same_parameters_to_the_bit(runs: Path) -> None:
    crew = {"workers": 3, "strategy": "allreduce", "steps": 300}
    inject = ["kill:worker-1@step=40", "kill:worker-0@step=180"]
    run = paceline.fit(task("Digests"), out=runs, evaluate="end", inject=inject, **crew)
    logs = [run.folder.log_path(f"worker-{index}").read_text() for index in range(3)]
    digests = [{line for line in log.splitlines() if line.startswith("digest")} for log in logs]
    assert len(digests[0]) == 1
    assert digests[0] == digests[1] == digests[2]
    assert len(told(run, "back")) == 2


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", [TWO, FOUR, AVERAGED], ids=str)
def test_one_that_dies_when_all_have_trained(crew: dict[str, Any], runs: Path) -> None:
    """The others have parted, and are done; what they have is still there to be had."""
    run = paceline.fit(task("DiesScoring"), out=runs, steps=40, evaluate="end", **crew)
    assert run.status == "done"
    assert told(run, "died", "back") == [("worker-0", "died"), ("worker-0", "back")]
    (score,) = run.folder.scores()
    assert (score.final, score.step, score.count) == (True, 40, 500)
    assert run.parameters()["weight"].isfinite().all()


def test_what_an_update_rule_remembers_is_handed_on(runs: Path) -> None:
    """The one that was there from the beginning dies, too: all that is left was handed on."""
    fields = {"strategy": "allreduce", "workers": 2, "steps": 250, "lr": 0.01}
    fields |= {"optimizer": "adam"}
    calm = paceline.fit(task("Patient"), out=runs, evaluate="never", **fields)
    inject = ["kill:worker-1@step=30", "kill:worker-0@step=180"]
    harmed = paceline.fit(task("Patient"), out=runs, evaluate="never", inject=inject, **fields)
    assert len(told(harmed, "back")) == 2
    for name, values in calm.parameters().items():
        torch.testing.assert_close(harmed.parameters()[name], values, rtol=0, atol=1e-5)


def pids(runs: Path) -> dict[str, int]:
    (folder,) = runs.glob("[!.]*")
    roles = json.loads((folder / "roles.json").read_text())["roles"]
    return {role["role"]: role["pid"] for role in roles if role["pid"]}


def kill_next_life(runs: Path, role: str, after: float) -> Callable[[dict[str, int]], None]:
    """Kill a role, and its next life so many seconds after its birth."""

    def act(first: dict[str, int]) -> None:
        os.kill(first[role], signal.SIGKILL)
        over = time.monotonic() + 5
        while pids(runs).get(role, first[role]) == first[role] and time.monotonic() < over:
            time.sleep(0.002)
        time.sleep(after)
        os.kill(pids(runs)[role], signal.SIGKILL)

    return act


@pytest.mark.thorough
@pytest.mark.parametrize("after", [0.0, 0.2])
def test_the_one_that_comes_back_is_killed_again(after: float, runs: Path) -> None:
    with harm(runs, kill_next_life(runs, "worker-1", after)):
        run = train(runs, TWO, epochs=20)
    all_counted(run, 20)
    assert len(told(run, "died")) == 2


@pytest.mark.thorough
def test_several_die_at_any_moment(runs: Path) -> None:
    chance = Random(0)

    def some(first: dict[str, int]) -> None:
        def kill_some() -> None:
            for role in chance.sample(range(4), 3):
                time.sleep(chance.uniform(0, 0.4))
                os.kill(pids(runs)[f"worker-{role}"], signal.SIGKILL)

        threading.Thread(target=kill_some).start()

    with harm(runs, some):
        run = train(runs, FOUR, epochs=20)
    all_counted(run, 20)
    assert len(told(run, "died")) == 3


@pytest.mark.thorough
def test_one_that_is_stopped_for_too_long_is_not_waited_for(runs: Path) -> None:
    run = train(runs, FOUR, "stop:worker-1@step=50", lease=0.5)
    all_counted(run)
    assert told(run, "died", "back") == [("worker-1", "died"), ("worker-1", "back")]


@pytest.mark.thorough
def test_one_that_goes_on_in_time_is_only_waited_for(runs: Path) -> None:
    run = train(runs, FOUR, "stop:worker-1@step=50+0.6s", lease=20.0)
    all_counted(run)
    assert not told(run, "died", "regrouped")


def test_when_nobody_is_left_it_says_so(runs: Path) -> None:
    def all_of_them(found: dict[str, int]) -> None:
        for pid in found.values():
            os.kill(pid, signal.SIGKILL)

    with (
        harm(runs, all_of_them) as watch,
        pytest.raises(RunFailed, match="all workers that had the parameters are gone"),
    ):
        train(runs, TWO, epochs=1000)
    assert not alive([*watch.pids.values()])


@pytest.mark.thorough
def test_shares_by_speed_are_dealt_anew(runs: Path) -> None:
    crew = TWO | {"balance": True, "epochs": 16}
    run = train(runs, crew, "slow:worker-1x3", "kill:worker-0@step=60")
    all_counted(run, 16)
    steps = read_steps(run.folder.steps_path("worker-1"))
    assert steps["samples"].max() == 2 * BATCH, "all, while it was alone"
    assert steps["samples"][-1] < BATCH


def test_a_run_that_is_stopped_while_one_is_away_goes_on(runs: Path) -> None:
    def kill_and_stop(first: dict[str, int]) -> None:
        os.kill(first["worker-1"], signal.SIGKILL)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    with harm(runs, kill_and_stop):
        run = train(runs, TWO)
    assert run.status == "stopped"
    if any(event["kind"] == "kept" for event in run.summary["events"]):
        all_counted(paceline.resume(run))


@pytest.mark.thorough
def test_a_run_that_was_taken_up_survives_a_death(runs: Path) -> None:
    with harm(runs, lambda _: os.kill(os.getpid(), signal.SIGINT)):
        run = train(runs, TWO)
    assert run.status == "stopped"
    before = set(pids(runs).values())

    def kill_one() -> None:
        over = time.monotonic() + 10
        while before & set(pids(runs).values()) and time.monotonic() < over:
            time.sleep(0.01)
        time.sleep(0.5)
        os.kill(pids(runs)["worker-0"], signal.SIGKILL)

    killing = threading.Thread(target=kill_one)
    killing.start()
    run = paceline.resume(run)
    killing.join()
    all_counted(run)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("role", ["worker-0", "worker-1"])
def test_averages_go_on_without_it(role: str, runs: Path) -> None:
    with harm(runs, kill(role), role):
        run = train(runs, AVERAGED)
    assert run.status == "done"
    assert told(run, "died", "back") == [(role, "died"), (role, "back")]
    seen = run.parameters()["seen"]
    # One averaging lacks what it had done, and what the others had done counts for more.
    assert (seen < EPOCHS - 0.5).sum() <= AVERAGED["sync_every"] * BATCH
    assert seen.max() <= EPOCHS + 2
    assert longest_pause(run, f"worker-{1 - int(role[-1])}") < PROMISED


OWN_LOOP = """
import torch
import paceline

model = torch.nn.Linear(3, 1)
model, optimizer = paceline.parallel(model, torch.optim.SGD(model.parameters(), lr=0.01))
for _ in range(100000):
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
"""


def test_a_loop_of_ones_own_ends_with_the_first_death(runs: Path, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(OWN_LOOP)
    inject = ("kill:worker-1@step=30",)
    spec = RunSpec(task="<python>:mine.py", strategy="allreduce", workers=2, inject=inject)
    with pytest.raises(RoleDied, match="worker-1"):
        launch_script(spec, script, [], out=runs, echo=None)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("crew", "victim"),
    [(TWO, "worker-0"), ({"strategy": "ps-async", "workers": 2}, "evaluator")],
    ids=str,
)
def test_the_evaluator_goes_on_scoring(crew: dict[str, Any], victim: str, runs: Path) -> None:
    """It is started again, and what it had asked worker-0 for is asked for again."""
    with harm(runs, kill(victim), "evaluator"):
        run = paceline.fit(task("Patient"), out=runs, steps=400, evaluator=True, **crew)
    assert run.status == "done"
    assert told(run, "died", "back") == [(victim, "died"), (victim, "back")]
    back = next(event["time"] for event in run.summary["events"] if event["kind"] == "back")
    assert any(score.time > back and not score.final for score in run.folder.scores())
