"""kill -9 of servers that have standbys: whatever goes, nothing that was answered is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from faults_tools import ALL, Watch, alive, harm, kill, task
from torch import Tensor

import paceline
from paceline.errors import RoleDied, RunFailed
from paceline.launch import succession
from paceline.launch.starter import Starter
from paceline.transport import memory

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

CREWS = ("ps-sync-tcp", "ps-async-tcp", "ssp-tcp")
BATCH, EPOCHS = 10, 12
Act = Callable[[dict[str, int]], None]


def counted(run: paceline.Run) -> Tensor:
    seen: Tensor = run.parameters()["seen"]
    return seen


def train(runs: Path, crew: str, name: str = "Counting", **more: Any) -> paceline.Run:
    asked = ALL[crew]
    rate = BATCH * (asked["workers"] if asked["strategy"] == "ps-sync" else 1)
    fields = {"epochs": EPOCHS, "lr": float(rate), "evaluate": "never", "batch": BATCH}
    return paceline.fit(task(name), out=runs, **(fields | asked | {"replicas": 1} | more))


def told(run: paceline.Run, role: str) -> list[str]:
    return [event["kind"] for event in run.summary["events"] if event["role"] == role]


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-sync-tcp", "backup-tcp"])
def test_standbys_are_roles_and_change_nothing(crew: str, runs: Path) -> None:
    run = train(runs, crew)
    roles = {role["role"]: role for role in run.roles}
    servers = [role for role in roles if role.startswith("server-")]
    for server in servers:
        standby = roles[server.replace("server", "standby")]
        assert standby["steps"] == roles[server]["steps"]
        assert standby["received_mb"] > 0
        assert standby["memory_mb"] is not None
    if crew != "backup-tcp":
        assert counted(run).eq(EPOCHS).all()
    assert not run.summary["events"]


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", [*CREWS, "backup-tcp"])
def test_a_standby_takes_its_servers_place(crew: str, runs: Path) -> None:
    with harm(runs, kill("server-0"), "server-0") as watch:
        run = train(runs, crew)
    assert run.status == "done"
    assert not alive([*watch.pids.values()])
    assert told(run, "server-0")[:2] == ["died", "back"]
    assert told(run, "standby-0") == ["back"]
    if crew != "backup-tcp":
        assert counted(run).eq(EPOCHS).all()


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-sync-tcp", "ps-async-tcp"])
def test_a_server_goes_on_without_its_standby_until_there_is_another(crew: str, runs: Path) -> None:
    with harm(runs, kill("standby-0"), "standby-0"):
        run = train(runs, crew)
    assert told(run, "standby-0") == ["died", "back"]
    assert told(run, "server-0") == ["alone"]
    assert counted(run).eq(EPOCHS).all()


def one_after_another(runs: Path, roles: list[str], apart: list[float]) -> Act:
    """Kill these, each once the whole crew is in step again, and so long after that."""

    def act(_: dict[str, int]) -> None:
        threading.Thread(target=wait_and_kill, daemon=True).start()

    def wait_and_kill() -> None:
        for role, seconds in zip(roles, apart, strict=True):
            time.sleep(seconds)
            before = backs(runs)
            if pid := Watch(runs).look().get(role):
                os.kill(pid, signal.SIGKILL)
            over = time.monotonic() + 10
            while backs(runs) == before and time.monotonic() < over:
                time.sleep(0.005)

    return act


def backs(runs: Path) -> int:
    """How often a standby has come to be in step again."""
    count = 0
    for path in runs.glob("[!.]*/events.jsonl"):
        lines = [line for line in path.read_text().splitlines() if line.endswith("}")]
        events = [json.loads(line) for line in lines]
        count += sum(e["kind"] == "back" and e["role"].startswith("standby") for e in events)
    return count


@pytest.mark.thorough
@pytest.mark.parametrize("crew", ["ps-sync-tcp", "ps-async-tcp"])
def test_one_after_another(crew: str, runs: Path) -> None:
    rng = random.Random(crew)
    roles = ["server-0", "standby-0", "server-0", "server-1"]
    apart = [rng.uniform(0, 0.1) for _ in roles]
    with harm(runs, one_after_another(runs, roles, apart), *roles):
        run = train(runs, crew, epochs=24)
    assert counted(run).eq(24).all()
    assert sum(event["kind"] == "died" for event in run.summary["events"]) >= 2


@pytest.mark.matrix(1)
@pytest.mark.parametrize("crew", ["ps-sync-tcp", "ps-async-tcp"])
def test_a_worker_and_a_server_at_once(crew: str, runs: Path) -> None:
    def both(pids: dict[str, int]) -> None:
        os.kill(pids["worker-1"], signal.SIGKILL)
        os.kill(pids["server-0"], signal.SIGKILL)

    with harm(runs, both, "worker-1", "server-0"):
        run = train(runs, crew)
    assert run.status == "done"
    if crew != "ps-sync-tcp":
        assert counted(run).eq(EPOCHS).all()


def both(first: str, apart: float = 0.0) -> Act:
    """Kill a server and its standby, this one first."""
    second = {"server-0": "standby-0", "standby-0": "server-0"}[first]

    def act(pids: dict[str, int]) -> None:
        os.kill(pids[first], signal.SIGKILL)
        time.sleep(apart)
        os.kill(pids[second], signal.SIGKILL)

    return act


@pytest.mark.matrix(1)
@pytest.mark.parametrize(
    ("crew", "first"), [("ps-sync-tcp", "server-0"), ("ps-async-tcp", "standby-0")]
)
def test_both_at_once_and_the_servers_memory_is_still_there(
    crew: str, first: str, runs: Path
) -> None:
    with harm(runs, both(first), "server-0", "standby-0"):
        run = train(runs, crew)
    assert told(run, "server-0").count("died") >= 1
    assert counted(run).eq(EPOCHS).all()


@pytest.mark.matrix(1)
@pytest.mark.parametrize("apart", [0.02, 0.05])
def test_a_server_dies_while_a_new_standby_catches_up(apart: float, runs: Path) -> None:
    with harm(runs, both("standby-0", apart), "server-0", "standby-0"):
        run = train(runs, "ps-async-tcp")
    assert counted(run).eq(EPOCHS).all()


def test_both_at_once_end_the_run_where_no_memory_outlives_them(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available", lambda: False)
    with (
        harm(runs, both("standby-0"), "server-0", "standby-0"),
        pytest.raises(RoleDied, match=r"server-0 was killed .* standby .*updates .* are lost"),
    ):
        train(runs, "ps-async-tcp", epochs=1000)


def test_a_standby_that_cannot_follow_is_told_with_the_reason(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting = Starter.standby

    def elsewhere(self: Any, spec: Any, facts: Any, server: Any, address: str) -> None:
        right, server.address = server.address, "127.0.0.1:1"
        starting(self, spec, facts, server, address)
        server.address = right

    monkeypatch.setattr(Starter, "standby", elsewhere)
    monkeypatch.setattr(succession, "IN_STEP_WITHIN", 0.5)
    why = r"standby-0 is not in step .*: cannot reach server-0 at 127.0.0.1:1: Connection refused;"
    with pytest.raises(RunFailed, match=why):
        train(runs, "ps-async-tcp")


def test_what_an_update_rule_remembers_is_there_too(runs: Path) -> None:
    fields = {"strategy": "ps-sync", "transport": "tcp", "workers": 2, "steps": 60, "lr": 0.01}
    fields |= {"optimizer": "adam", "evaluate": "never", "replicas": 1}
    calm = paceline.fit(task("Patient"), out=runs / "calm", **fields)
    with harm(runs / "harmed", kill("server-0"), "server-0"):
        harmed = paceline.fit(task("Patient"), out=runs / "harmed", **fields)
    assert "died" in told(harmed, "server-0")
    for name, values in calm.parameters().items():
        torch.testing.assert_close(harmed.parameters()[name], values, rtol=0, atol=1e-6)


@pytest.mark.thorough
def test_a_frozen_standby_is_waited_for_as_long_as_its_lease(runs: Path) -> None:
    run = train(runs, "ps-sync-tcp", inject=["stop:standby-0@0.1s"], lease=0.6)
    assert told(run, "standby-0") == ["injected", "frozen", "died", "back"]
    assert "alone" in told(run, "server-0")
    assert counted(run).eq(EPOCHS).all()


@pytest.mark.thorough
def test_a_standby_that_thaws_in_time_is_still_in_step(runs: Path) -> None:
    run = train(runs, "ps-async-tcp", inject=["stop:standby-0@0.1s+0.3s"], lease=20.0)
    assert "died" not in told(run, "standby-0")
    assert told(run, "server-0") == []
    assert counted(run).eq(EPOCHS).all()


@pytest.mark.thorough
def test_a_standby_that_is_cut_off_comes_back_in_step(runs: Path) -> None:
    inject = ["cut:standby-0-server-0@0.1s+0.3s", "kill:server-0@1s"]
    run = train(runs, "ps-async-tcp", epochs=20, inject=inject)
    assert "alone" in told(run, "server-0")
    assert counted(run).eq(20).all()


def test_through_tls(runs: Path) -> None:
    pytest.importorskip("cryptography")
    with harm(runs, kill("server-0"), "server-0"):
        run = train(runs, "ps-async-tcp", tls=True)
    assert "died" in told(run, "server-0")
    assert counted(run).eq(EPOCHS).all()
