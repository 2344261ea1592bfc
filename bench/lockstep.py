"""Workers that exchange nothing and only wait for each other once a step. One of them.

Each applies its own gradients, as in `independent`. What is lost against that is the price of being
in step: a pause of either worker stops both. No synchronous strategy can lose less. Loop, batches
and update are Paceline's own. Prints the time at which each step ended, as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from types import SimpleNamespace

import torch

from bench.processes import end_with_starter, pin
from paceline.data.sampler import Order, slices
from paceline.exchange.base import Gradient, Outcome, Post
from paceline.exchange.local import Local
from paceline.exchange.replica import Replica
from paceline.launch.starter import SPIN
from paceline.measure.malloc import keep_large_blocks
from paceline.server.rules import Hyper
from paceline.spec import RunSpec
from paceline.tasks.load import load_task
from paceline.transport.board import Board, size_board
from paceline.transport.slate import Slate
from paceline.worker.batches import Batches
from paceline.worker.loop import train

LR = 0.01


class InStep(Local):
    """The board has a word a worker: how many steps it has taken."""

    def __init__(self, post: Post) -> None:
        super().__init__(post)
        self._board = Board(post.board, post.workers, post.spin)
        self._steps = 0

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        words, workers = self._board.words, self._post.workers
        self._steps += 1
        self._board.post(self._post.index, self._steps)
        if not all(words[worker] >= self._steps for worker in range(workers)):
            meanwhile()
            for worker in range(workers):
                self._board.wait(worker, self._steps, f"worker-{worker}")
        return super().step(gradient, meanwhile)


class Ends:
    """Stands where a worker's reporter would."""

    asked = False, False  # neither to stop nor for a checkpoint
    taken = 0
    harm = SimpleNamespace(drag=lambda fetched: None)

    def __init__(self) -> None:
        self.times: list[float] = []

    def step(self, *_: object) -> None:
        self.times.append(time.monotonic())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--board", required=True, help="an empty file that all of them share")
    args = parser.parse_args()

    end_with_starter()
    pin(args.rank, args.workers)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // args.workers))
    keep_large_blocks()
    board = os.open(args.board, os.O_RDWR)
    size_board(board, args.workers)

    torch.manual_seed(0)
    task = load_task(RunSpec(task=args.task))
    samples = task.data().train
    replica = Replica(task.model())
    where = {"index": args.rank, "workers": args.workers, "board": board, "spin": SPIN}
    exchange = InStep(Post(**where, rule="sgd", hyper=Hyper()))
    exchange.start(replica)
    lots = slices(Order(len(samples), 0), args.batch, args.rank, args.workers, None, args.steps)
    slate, rate = Slate(), SimpleNamespace(rate=lambda seen: LR)
    batches, ends = Batches(samples, lots, slate), Ends()
    train(task, replica, batches, exchange, rate, args.batch, ends, slate)
    batches.close()
    print(json.dumps(ends.times))


if __name__ == "__main__":
    main()
