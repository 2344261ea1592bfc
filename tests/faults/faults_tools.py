"""Watching a run from beside it, and doing it harm at a chosen moment."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paceline.store.steps import HEADER, ROW

FAULTY = Path(__file__).with_name("faulty_tasks.py")
ENDS_WITHIN = 5.0  # seconds from the harm to the end
BESIDE_OTHERS = 3 * ENDS_WITHIN  # where tests share the cores

CREWS: dict[str, dict[str, Any]] = {
    "single": {"strategy": "single"},
    "independent": {"strategy": "independent", "workers": 2},
    "allreduce": {"strategy": "allreduce", "workers": 2},
    **{
        f"{strategy}-{transport}": {
            "strategy": strategy,
            "workers": 2,
            "servers": 2,
            "transport": transport,
        }
        for strategy in ("ps-sync", "ps-async")
        for transport in ("shm", "tcp")
    },
}
# The relatives of those: the same roles, another exchange.
RELATIVES: dict[str, dict[str, Any]] = {
    "hogwild": {"strategy": "hogwild", "workers": 2},
    **{
        f"{name}-{transport}": {**crew, "transport": transport}
        for transport in ("shm", "tcp")
        for name, crew in (
            ("ssp", {"strategy": "ssp", "workers": 2, "servers": 2, "bound": 2}),
            ("backup", {"strategy": "ps-sync", "workers": 3, "backup": 1}),
            ("local-sgd", {"strategy": "local-sgd", "workers": 2, "sync_every": 4}),
        )
    },
}
ALL = CREWS | RELATIVES


def task(name: str) -> str:
    return f"{FAULTY}:{name}"


def flags(crew: dict[str, Any]) -> list[str]:
    return [word for name, value in crew.items() for word in (f"--{name}", str(value))]


def alive(pids: list[int]) -> list[int]:
    """Those that are neither gone nor dead and only waiting to be noticed."""
    living = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            living.append(pid)
    return living


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class Watch:
    """A run in this process, watched by a thread; `ended_within` is counted from the harm."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self.pids: dict[str, int] = {}
        self.harmed = 0.0

    def look(self) -> dict[str, int]:
        """The pids of all roles, once every worker has taken steps."""
        for folder in self._runs.glob("[!.]*"):
            roles = json.loads((folder / "roles.json").read_text())["roles"]
            pids = {role["role"]: role["pid"] for role in roles if role["pid"]}
            workers = [role for role in pids if role.startswith("worker-")]
            if workers and all(_stepped(folder, role) for role in workers):
                return pids
        return {}

    @property
    def ended_within(self) -> float:
        return time.monotonic() - self.harmed


def _stepped(folder: Path, role: str) -> bool:
    path = folder / "steps" / f"{role}.steps"
    return path.is_file() and path.stat().st_size >= len(HEADER) + ROW


@contextmanager
def harm(runs: Path, act: Callable[[dict[str, int]], None], *roles: str) -> Iterator[Watch]:
    """Do `act` to the pids of the run in `runs` when it is in the middle and has these roles."""
    watch = Watch(runs)

    def look() -> bool:
        watch.pids = watch.look()
        if not watch.pids or not set(roles) <= watch.pids.keys():
            return False
        watch.harmed = time.monotonic()
        act(watch.pids)
        return True

    with beside(look, 0.01):
        yield watch


@contextmanager
def beside(look: Callable[[], bool], every: float) -> Iterator[None]:
    """Look again and again, in another thread, until that says that it is done."""
    over = threading.Event()

    def wait() -> None:
        while not over.wait(every):
            if look():
                return

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(5)


def kill(role: str) -> Callable[[dict[str, int]], None]:
    return lambda pids: os.kill(pids[role], signal.SIGKILL)
