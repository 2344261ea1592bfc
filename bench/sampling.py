"""What sampling costs: roles and host, read and written to disk, at two samples a second.

    python -m bench.sampling --roles 10 --threads 8

The roles are idle processes with so many threads; with `--busy` all of those run between any two
samples.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from paceline.measure.clock import Clock
from paceline.measure.own import own
from paceline.measure.resources import Said, Sampler
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.types import Traffic

A_SECOND = 2
PAUSE = 0.02  # seconds between samples: what is cold after half a second should be cold here
ROLE = """
import sys, threading, time
def nap():
    while True:
        time.sleep({nap})
for _ in range({threads} - 1):
    threading.Thread(target=nap, daemon=True).start()
print("up", flush=True)
nap()
"""


@contextlib.contextmanager
def processes(count: int, threads: int, nap: float) -> Iterator[dict[str, int]]:
    program = ROLE.format(threads=threads, nap=nap)
    started = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        for _ in range(count)
    ]
    try:
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        yield {f"worker-{n}": process.pid for n, process in enumerate(started)}
    finally:
        for process in started:
            process.kill()
            process.wait()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--roles", type=int, default=10)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--peers", type=int, default=2)
    parser.add_argument("--busy", action="store_true", help="threads run between any two samples")
    parser.add_argument("--repeats", type=int, default=200)
    args = parser.parse_args(arguments)

    def cost(what: str, act: Callable[[], object]) -> None:
        act()
        spent = []
        for _ in range(args.repeats):
            time.sleep(PAUSE)
            began = time.process_time()
            act()
            spent.append(time.process_time() - began)
        each = statistics.median(spent)
        print(f"{what:32} {1e6 * each:6.0f} us, {100 * A_SECOND * each:.2f} % of a core")

    peers = tuple(Traffic(f"server-{n}", 10**9, 10**9, 10**5, 10**5) for n in range(args.peers))
    nap = 0.005 if args.busy else 3600.0
    with (
        processes(args.roles, args.threads, nap) as pids,
        tempfile.TemporaryDirectory() as root,
    ):
        folder = RunFolder.create(Path(root), RunSpec())
        sampler = Sampler(Clock(time.monotonic()))
        said = dict.fromkeys(pids, Said(10**9, 10**9, peers, own()))
        known = [psutil.Process(pid) for pid in pids.values()]

        def all_of_it() -> None:
            folder.append_resources(sampler.sample(pids, said))
            folder.append_host(sampler.host())

        print(f"{args.roles} roles of {args.threads} threads, {A_SECOND} samples a second")
        cost("roles", lambda: sampler.sample(pids, said))
        cost("host", sampler.host)
        cost("roles and host, written", all_of_it)
        cost(
            "by psutil: CPU, memory, state",
            lambda: [(p.cpu_times(), p.memory_info(), p.status()) for p in known],
        )
        sampler.close()
        folder.close()


if __name__ == "__main__":
    main()
