"""The server role: a table behind a gate, until the supervisor says that all are done."""

from __future__ import annotations

from typing import Any

import torch

from paceline.exchange.gates import make_gate
from paceline.measure.clock import Clock
from paceline.server.rules import Hyper, Layers, make_rule
from paceline.server.serve import Desk, Tally, serve
from paceline.server.table import Table
from paceline.transport.control import Control
from paceline.transport.sockets import listen
from paceline.types import Progress, record


def server(assignment: dict[str, Any], fds: dict[str, int], control: Control) -> None:
    """Serve the range [start, stop) of the flat parameters."""
    start, stop = assignment["start"], assignment["stop"]
    workers = assignment["workers"]
    gate = make_gate(assignment["gate"], workers)
    slots = torch.empty(gate.places, stop - start)
    grads = torch.empty(workers, stop - start)
    layers = Layers(tuple(assignment["layers"]), start)
    hyper = Hyper.of(assignment["hyper"])
    rule = make_rule(assignment["rule"], stop - start, hyper, layers=layers)
    tally = Tally()
    desk = Desk(Table(slots, grads, rule), gate, grads, tally)
    listener, address = listen(assignment["address"])
    clock = Clock(assignment["t0"])
    began = clock.now()
    control.send("ready", address=address)

    def tick() -> bool:
        progress = Progress(step=tally.applied, sent=tally.sent, received=tally.received)
        control.send("progress", **record(progress))
        return control.take("stop") is not None or control.ended

    serve(listener, desk, bytes.fromhex(assignment["secret"]), tally, tick, control.fileno())
    control.send(
        "done",
        applied=tally.applied,
        sent=tally.sent,
        received=tally.received,
        phases=tally.phases,
        seconds=clock.now() - began,
    )
