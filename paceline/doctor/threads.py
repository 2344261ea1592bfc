"""Samples a second of one worker with 1, 2, … torch threads: forward, backward, update, in turns.

Batches are made beforehand, so that only what threads can change is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from paceline.diagnose.doctor.facts import Threads
from paceline.diagnose.doctor.threads import candidates, judge
from paceline.doctor.asked import Asked
from paceline.measure.cores import my_cores
from paceline.measure.malloc import keep_large_blocks
from paceline.spec import RunSpec

ROUNDS = 9
FEWEST = 3  # rounds, of a task whose steps take long
BATCHES = 8
LONGEST = 2.0  # times the seconds asked for; after that no round is begun


def measure(asked: Asked, seconds: float) -> Threads:
    import torch

    keep_large_blocks()  # as a role does
    spec = RunSpec(**asked.spec)
    usual = torch.get_num_threads()
    step, batch = _stepping(spec)
    counts = candidates(len(my_cores()), usual)
    began = time.perf_counter()
    turn = max(seconds / (ROUNDS * len(counts)), _warm(step, counts))
    rounds: list[list[float]] = []
    while len(rounds) < ROUNDS:
        spent = time.perf_counter() - began
        if len(rounds) >= FEWEST and spent > LONGEST * seconds:
            break
        order = counts if len(rounds) % 2 else counts[::-1]
        found = {n: _rate(step, n, turn, batch) for n in order}
        rounds.append([found[n] for n in counts])
    torch.set_num_threads(usual)
    return judge(spec.task.rpartition(":")[2], batch, counts, rounds)


def _stepping(spec: RunSpec) -> tuple[Callable[[], object], int]:
    """What takes a step of the task as a lone worker does, and how many samples that is."""
    import torch

    from paceline.exchange.base import Gradient, Post
    from paceline.exchange.make import make_exchange
    from paceline.exchange.replica import Replica
    from paceline.server.rules import Hyper
    from paceline.tasks.load import load_task
    from paceline.worker.task import model_for

    task = load_task(spec)
    torch.manual_seed(spec.seed)
    samples = task.data().train
    batch = min(spec.batch or task.batch, len(samples))
    replica = Replica(model_for(task, spec))
    rule = spec.optimizer or task.optimizer
    post = Post(index=0, workers=1, rule=rule, hyper=Hyper.of(spec.model_dump()))
    exchange = make_exchange(spec, post, len(replica.tables))
    exchange.start(replica)
    replica.model.train()
    generator = np.random.default_rng(spec.seed)
    batches = [samples.batch(generator.integers(len(samples), size=batch)) for _ in range(BATCHES)]
    gradient = Gradient(batch, batch, spec.lr or task.lr, False)
    taken = 0

    def step() -> None:
        nonlocal taken
        exchange.expect(gradient)
        task.gradients(replica.model, batches[taken % BATCHES], 1.0)
        exchange.step(gradient, lambda: 0.0)
        taken += 1

    return step, batch


def _warm(step: Callable[[], object], counts: list[int]) -> float:
    """Take a step or two with each number; how long one takes at most."""
    import torch

    taken = []
    for n in counts:
        torch.set_num_threads(n)
        step()
        began = time.perf_counter()
        step()
        taken.append(time.perf_counter() - began)
    return max(taken)


def _rate(step: Callable[[], object], threads: int, seconds: float, batch: int) -> float:
    import torch

    torch.set_num_threads(threads)
    step()  # the threads of the number before come to rest
    steps, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds or not steps:
        step()
        steps += 1
    return steps * batch / spent
