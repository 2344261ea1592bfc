"""How fast 80 MB of gradients are pushed and 80 MB of parameters pulled, beside iperf3.

    python -m bench.wire                 one worker, one server, loopback; five rounds of each

Both are measured in turns, a few seconds each, so that the machine's moods fall on both alike. A
round trip is what a step of `ps-async` over TCP does between backward and the next forward: every
block is received, applied and answered. iperf3 only moves bytes, in one direction.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import time
from multiprocessing.connection import Connection

import torch
from torch import nn

from bench.catalog import ENOUGH, WIRE
from bench.findings import Findings, tell
from bench.tables import spread
from paceline.exchange.base import Gradient, Post
from paceline.exchange.gates import make_gate
from paceline.exchange.replica import Replica
from paceline.exchange.served import Served
from paceline.server.desk import Desk
from paceline.server.rules import Hyper, make_rule
from paceline.server.serve import serve
from paceline.server.tally import Tally
from paceline.transport import auth
from paceline.transport.sockets import listen

FLOATS = 20_000_000
LEAST = 0.9  # of iperf3


class Flat(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.zeros(FLOATS))


def serve_one(secret: bytes, told: Connection) -> None:
    torch.set_num_threads(1)
    tally = Tally()
    desk = Desk(
        FLOATS,
        1,
        lambda: make_gate("at-once", 1),
        lambda size: make_rule("sgd", size, Hyper()),
        tally,
    )
    listener, address = listen("127.0.0.1:0")
    told.send(address)
    wake, _ = os.pipe()
    serve(listener, desk, secret, tally, lambda: False, wake)


class Ours:
    """A worker here and a server in a process of its own."""

    def __init__(self) -> None:
        secret = auth.new_secret()
        here, there = multiprocessing.Pipe()
        self._server = multiprocessing.Process(target=serve_one, args=(secret, there), daemon=True)
        self._server.start()
        torch.set_num_threads(1)
        self._replica = Replica(Flat())
        post = Post(
            index=0,
            workers=1,
            rule="sgd",
            hyper=Hyper(),
            secret=secret,
            shards=((0, FLOATS),),
            addresses=(here.recv(),),
        )
        self._exchange = Served(post, in_rounds=False)
        self._exchange.start(self._replica)
        self._grad = torch.full((FLOATS,), 1e-6)

    def rate(self, seconds: float) -> float:
        """Bytes a second, both ways together."""
        parameter = self._replica.parameters[0]
        gradient = Gradient(1, 1, 0.1, False)
        rounds, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            self._exchange.expect(gradient)
            parameter.grad = self._grad
            self._exchange.step(gradient, lambda: 0.0)
            rounds += 1
        return rounds * 2 * FLOATS * 4 / (time.perf_counter() - began)

    def close(self) -> None:
        self._exchange.close()
        self._server.terminate()


def iperf(seconds: float) -> float:
    """Bytes a second."""
    server = subprocess.Popen(
        ["iperf3", "--server", "--one-off", "--port", "5299"], stdout=subprocess.DEVNULL
    )
    try:
        time.sleep(0.3)
        client = ["iperf3", "--client", "127.0.0.1", "--port", "5299", "--json"]
        printed = subprocess.run(
            [*client, "--time", str(round(seconds))], capture_output=True, check=True, timeout=60
        ).stdout
    finally:
        server.terminate()
        server.wait()
    return float(json.loads(printed)["end"]["sum_received"]["bits_per_second"]) / 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    args = parser.parse_args()
    if shutil.which("iperf3") is None:
        raise SystemExit("iperf3 is not installed: apt-get install iperf3")
    ours = Ours()
    ours.rate(0.5)
    pairs = []
    for repeat in range(args.repeats):
        pairs.append((ours.rate(args.seconds), iperf(args.seconds)))
        told = f"{pairs[-1][0] / 1e9:.2f} GB/s, iperf3 {pairs[-1][1] / 1e9:.2f} GB/s"
        print(f"{repeat + 1}/{args.repeats} {told}", file=sys.stderr, flush=True)
    ours.close()
    ratios = [a / b for a, b in pairs]
    found = Findings(("", "GB/s"))
    for name, rates in zip(("push and pull", "iperf3"), zip(*pairs, strict=True), strict=True):
        found.rows.append((name, spread([rate / 1e9 for rate in rates], ".2f")))
    met = statistics.median(ratios) >= LEAST
    found.want(f"push and pull: {LEAST}x iperf3", spread(ratios, ".2f"), met)
    tell(WIRE, found, args.repeats, whole=args.repeats >= ENOUGH)


if __name__ == "__main__":
    main()
