"""All-reduce: one worker that is asked to stop ends the round for all."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

# Two processes, forked before any thread is started; the steps each took come out at the end.
PROGRAM = """
import os, sys
from datetime import timedelta
import torch
from torch import nn
from torch._C._distributed_c10d import TCPStore
from paceline.exchange.allreduce import AllReduce
from paceline.exchange.base import Gradient, Post
from paceline.exchange.replica import Replica
from paceline.server.rules import Hyper

os.environ["GLOO_SOCKET_IFNAME"] = "lo"
ready, tell = os.pipe()
index = 1 if os.fork() == 0 else 0
if index == 0:
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False,
                     timeout=timedelta(seconds=20))
    os.write(tell, str(store.port).encode())
    port = store.port
else:
    port = int(os.read(ready, 10))
post = Post(index=index, workers=2, rule="sgd", hyper=Hyper(), meeting=f"127.0.0.1:{port}")
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


def test_a_request_to_stop_reaches_all_in_the_same_round() -> None:
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=40, check=False
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout == "4\n"


# The other has met this one and then says nothing at all: gloo alone would wait for minutes.
SILENT = """
import os, signal, time
from datetime import timedelta
import torch
from torch._C._distributed_c10d import TCPStore
from paceline.errors import PeerLost
from paceline.exchange.group import Group
from paceline.types import Plan

class Told:
    gone = False
    def called(self, generation):
        return False
    def broken(self, generation):
        return self.gone

os.environ["GLOO_SOCKET_IFNAME"] = "lo"
ready, tell = os.pipe()
other = os.fork()
if other:
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False,
                     timeout=timedelta(seconds=20))
    os.write(tell, str(store.port).encode())
    port = store.port
else:
    port = int(os.read(ready, 10))
plan = Plan.first((0, 1), f"127.0.0.1:{port}")
told = Told()
group = Group(plan, 0 if other else 1, torch.device("cpu"), (), told)
if not other:
    os.kill(os.getpid(), signal.SIGSTOP)
os.waitpid(other, os.WUNTRACED)
told.gone = True
began = time.monotonic()
try:
    group.finish(group.begin(torch.ones(1000)))
except PeerLost:
    group.close()
    print(time.monotonic() - began < 10.0)
os.kill(other, signal.SIGKILL)
os.waitpid(other, 0)
"""


def test_a_silent_peer_is_not_waited_for_once_the_group_is_known_to_be_broken() -> None:
    told = subprocess.run(
        [sys.executable, "-c", SILENT], capture_output=True, text=True, timeout=40, check=False
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout == "True\n"
