"""All-reduce: one worker that is asked to stop ends the round for all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

# Two processes, forked before any thread is started. What one says to the other lies in a folder.
TWO = """
import os, signal, sys, time
from pathlib import Path
import torch
from torch import nn
from paceline.errors import PeerLost
from paceline.exchange.allreduce import AllReduce
from paceline.exchange.base import Gradient, Post
from paceline.exchange.group import Group
from paceline.exchange.replica import Replica
from paceline.server.rules import Hyper
from paceline.transport.slate import Slate
from paceline.types import Plan

class Groups:
    gone = False
    folder = Path(sys.argv[1])
    def broken(self, generation):
        return self.gone
    def put(self, generation, key, value):
        path = self.folder / key.replace("/", "-")
        path.with_suffix(".new").write_bytes(value)
        path.with_suffix(".new").replace(path)
    def got(self, generation, key):
        path = self.folder / key.replace("/", "-")
        return path.read_bytes() if path.exists() else None

os.environ["GLOO_SOCKET_IFNAME"] = "lo"
other = os.fork()
index = 0 if other else 1
groups = Groups()
"""

# The steps each took come out at the end.
STEPS = """
post = Post(index=index, workers=2, crew=(0, 1), rule="sgd", hyper=Hyper(), groups=groups)
model = nn.Linear(3, 1, bias=False)
nn.init.constant_(model.weight, float(index))
replica = Replica(model)
exchange = AllReduce(post, summed=True)
exchange.start(replica)
assert torch.equal(replica.flat, torch.zeros(3)), "worker-0's parameters are everybody's"
steps = 0
while steps < 50:
    steps += 1
    samples = (1, 3)[index]
    model.weight.grad = torch.full((1, 3), -1.0 if index else -5.0) * samples / 4
    stopping = index == 1 and steps == 4
    if exchange.step(Gradient(samples, 4, 1.0, stopping), lambda: 0.0).stop:
        break
assert torch.equal(replica.flat, torch.full((3,), 2.0 * steps)), replica.flat  # (5 + 3) / 4
exchange.finish()
exchange.close()
if index == 1:
    os._exit(0 if steps == 4 else 1)
assert os.wait()[1] == 0
print(steps)
"""


def run_two(program: str, folder: Path) -> str:
    told = subprocess.run(
        [sys.executable, "-c", TWO + program, str(folder)],
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_a_request_to_stop_reaches_all_in_the_same_round(tmp_path: Path) -> None:
    assert run_two(STEPS, tmp_path) == "4\n"


# The other has met this one and then says nothing at all: gloo alone would wait for minutes.
SILENT = """
group = Group(Plan.first((0, 1)), index, torch.device("cpu"), (), groups, True, Slate())
if not other:
    os.kill(os.getpid(), signal.SIGSTOP)
os.waitpid(other, os.WUNTRACED)
groups.gone = True
began = time.monotonic()
try:
    group.finish(group.begin(torch.ones(1000)))
except PeerLost:
    group.close()
    print(time.monotonic() - began < 10.0)
os.kill(other, signal.SIGKILL)
os.waitpid(other, 0)
"""


def test_a_silent_peer_is_left_once_the_group_is_known_to_be_broken(tmp_path: Path) -> None:
    assert run_two(SILENT, tmp_path) == "True\n"


# This one is stopped while the other says that it is ready to receive, and dies: what this sends
# fails, and gloo tells nobody.
FORGOTTEN = """
group = Group(Plan.first((0, 1)), index, torch.device("cpu"), (), groups, True, Slate())
turn = groups.folder / "turn"
if not other:
    while not turn.exists():
        time.sleep(0.001)
    group.finish(group.begin(torch.ones(1000)))
summing, me = group.begin(torch.ones(1000)), os.getpid()
time.sleep(0.1)
if not os.fork():
    os.kill(me, signal.SIGSTOP)
    turn.touch()
    time.sleep(0.3)
    os.kill(other, signal.SIGKILL)
    time.sleep(0.1)
    os.kill(me, signal.SIGCONT)
    os._exit(0)
os.waitpid(other, 0)
groups.gone = True
began = time.monotonic()
try:
    group.finish(summing)
except PeerLost:
    group.close()
    del group
    print(time.monotonic() - began < 10.0, flush=True)
os._exit(0)
"""


def test_a_message_that_gloo_forgets_holds_nobody_up(tmp_path: Path) -> None:
    assert run_two(FORGOTTEN, tmp_path) == "True\n"
