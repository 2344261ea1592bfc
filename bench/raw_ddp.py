"""Plain torch DistributedDataParallel on gloo: the yardstick. One process of it.

It takes its model and samples from a Paceline task, so that the computation is the same, and
nothing else: process group, wrapper, optimizer and loop are torch's own. Prints the time at
which each step ended, as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from paceline.spec import RunSpec
from paceline.tasks.load import load_task


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--port", type=int, required=True)
    args = parser.parse_args()

    cores = sorted(os.sched_getaffinity(0))
    if len(cores) == args.workers:
        os.sched_setaffinity(0, {cores[args.rank]})
    torch.set_num_threads(max(1, len(cores) // args.workers))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{args.port}",
        rank=args.rank,
        world_size=args.workers,
    )
    torch.manual_seed(0)
    task = load_task(RunSpec(task=args.task))
    samples = task.data().train
    model = DistributedDataParallel(task.model())
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    order = np.random.default_rng(0).permutation(len(samples))

    ended = []
    whole = args.batch * args.workers
    for step in range(args.steps):
        begin = step * whole % (len(samples) - whole) + args.rank * args.batch
        batch = samples.batch(order[begin : begin + args.batch])
        optimizer.zero_grad()
        loss = task.loss(model, batch)
        loss.backward()
        optimizer.step()
        loss.item()
        ended.append(time.monotonic())
    print(json.dumps(ended), flush=True)
    dist.barrier()
    # Nothing is measured any more, and gloo's threads now and then abort a process that takes its
    # group apart.
    os._exit(0)


if __name__ == "__main__":
    main()
