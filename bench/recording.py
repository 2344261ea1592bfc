"""What recording costs: the worker's loop with its reporter on, against the same loop without.

    python -m bench.recording

Both loops run in this process, in turns, on softmax, whose steps are the shortest there are.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import torch

from paceline.data.sampler import Lot, Order, slices
from paceline.exchange.base import Post
from paceline.exchange.local import Local
from paceline.exchange.replica import Replica
from paceline.measure.clock import Clock
from paceline.server.rules import Hyper
from paceline.store.steps import StepWriter
from paceline.tasks.softmax import Softmax
from paceline.transport.control import Control, pair
from paceline.transport.slate import Slate
from paceline.worker.batches import Batches
from paceline.worker.harm import Harm
from paceline.worker.loop import train
from paceline.worker.recipe import Recipe
from paceline.worker.reporter import Reporter

STEPS = 400
BATCH = 200


class Mute:
    """A reporter that records nothing."""

    asked = False, False, False  # neither to stop nor for a checkpoint nor to leave
    taken = 0

    def __init__(self, harm: Harm) -> None:
        self.harm = harm

    def step(self, lot: Lot, *_: Any) -> None:
        pass


def drain(control: Control, done: threading.Event) -> None:
    while not done.wait(0.05):
        control.poll()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=40)
    args = parser.parse_args(arguments)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    task = Softmax()
    samples = task.data().train
    replica = Replica(task.model())
    exchange = Local(Post(index=0, workers=1, rule="sgd", hyper=Hyper()))
    exchange.start(replica)
    order = Order(len(samples), 0)

    recipe = Recipe(update=BATCH, first=0.1, peak=0.1, beta2=0.0, warmup=0.0, total=0, decay="none")
    ours, theirs = pair()
    heard, done, control = Control(theirs), threading.Event(), Control(ours)
    thread = threading.Thread(target=drain, args=(heard, done), daemon=True)
    thread.start()
    with tempfile.TemporaryDirectory() as folder:
        harm, slate = Harm(control, Path(folder)), Slate()
        writer = StepWriter(Path(folder) / "worker-0.steps")
        reporter = Reporter(
            control=control,
            writer=writer,
            clock=Clock(time.monotonic()),
            exchange=exchange,
            harm=harm,
            steps=STEPS,
            at_epoch_end=lambda step, epoch, share: None,
            on_snapshot=lambda message: None,
            on_keep=lambda message, position: None,
            slate=slate,
        )

        def seconds(reports: Any) -> float:
            began = time.perf_counter()
            batches = Batches(samples, slices(order, BATCH, 0, 1, None, STEPS), slate)
            train(task, replica, batches, exchange, recipe, BATCH, reports, slate)
            return time.perf_counter() - began

        seconds(reporter)
        seconds(Mute(harm))
        ratios = []
        for repeat in range(args.repeats):
            if repeat % 2:
                off, on = seconds(Mute(harm)), seconds(reporter)
            else:
                on, off = seconds(reporter), seconds(Mute(harm))
            ratios.append(off / on)
        writer.close()
    done.set()
    thread.join()
    ratios.sort()
    low, high = ratios[len(ratios) // 4], ratios[-len(ratios) // 4]
    print(
        f"throughput with recording over without: {statistics.median(ratios):.4f} "
        f"(middle half {low:.4f} – {high:.4f}, {args.repeats} interleaved pairs of {STEPS} steps); "
        "wanted: at least 0.99"
    )


if __name__ == "__main__":
    main()
