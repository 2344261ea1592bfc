"""A Ray actor as an asynchronous parameter server, and actors as its workers.

Runs in an environment of its own (bench/environments/ray.txt), to which Paceline's lends torch and
numpy. The computation is that of a Paceline task. Prints the times at which steps ended, as JSON,
a series for each worker.

What was chosen to suit it:
- Parameters and gradients travel as one flat numpy array each, which Ray puts into its shared
  memory whole and receivers read in place; no pickling, no copy on arrival.
- One call a step: pushing a gradient returns the new parameters.
- The loop runs inside the worker actors; the driver only waits.
- The model's parameters are views of the array that arrived.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import tempfile
import time
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import ray
import torch

from bench.processes import end_with_starter, pin
from paceline.exchange.replica import Replica
from paceline.spec import RunSpec
from paceline.tasks.load import load_task

Floats = npt.NDArray[np.float32]
SHARED_BYTES = 2 << 30


def adopted(array: Floats) -> torch.Tensor:
    """The array as a tensor. What Ray hands out is read-only, and only read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.from_numpy(array)


class Server:
    """Holds the parameters; applies each gradient as it comes."""

    def __init__(self, task: str, lr: float) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self._flat = Replica(load_task(RunSpec(task=task)).model()).flat
        self._lr = lr

    def pull(self) -> Floats:
        return self._flat.numpy()

    def push(self, gradient: Floats) -> Floats:
        self._flat.add_(adopted(gradient), alpha=-self._lr)
        return self._flat.numpy()


class Worker:
    def __init__(self, server: Any, args: argparse.Namespace, index: int) -> None:
        pin(index, args.workers)
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self._server, self._args, self._index = server, args, index
        self._task = load_task(RunSpec(task=args.task))
        self._replica = Replica(self._task.model())

    def ready(self) -> None:
        """Returns once the actor is there."""

    def train(self) -> list[float]:
        """The times at which its steps ended."""
        args, replica, samples = self._args, self._replica, self._task.data().train
        order = np.random.default_rng(self._index).permutation(len(samples))
        gradient = np.empty(replica.size, np.float32)
        out = torch.from_numpy(gradient)
        replica.bind(adopted(ray.get(self._server.pull.remote())))
        ended = []
        for step in range(args.steps):
            begin = step * args.batch % (len(samples) - args.batch)
            batch = samples.batch(order[begin : begin + args.batch])
            loss = self._task.loss(replica.model, batch)
            loss.backward()  # type: ignore[no-untyped-call]
            replica.gather(out)
            replica.bind(adopted(ray.get(self._server.push.remote(gradient))))
            loss.item()
            ended.append(time.monotonic())
        return ended


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args()
    end_with_starter()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # A token for this run alone; else Ray writes one into the user's home and keeps it.
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        ray.init(
            num_cpus=args.workers + 1,
            object_store_memory=SHARED_BYTES,
            include_dashboard=False,
            log_to_driver=False,
            _temp_dir=folder,
        )
        try:
            server = ray.remote(Server).remote(args.task, args.lr)
            kind = ray.remote(Worker)
            workers = [kind.remote(server, args, index) for index in range(args.workers)]
            ray.get([worker.ready.remote() for worker in workers])
            print(json.dumps(ray.get([worker.train.remote() for worker in workers])), flush=True)
        finally:
            ray.shutdown()


if __name__ == "__main__":
    main()
