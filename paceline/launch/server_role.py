"""The server role: a table behind a gate, until the supervisor says that all are done."""

from __future__ import annotations

from typing import Any

from paceline.exchange.codecs.make import make_codec
from paceline.exchange.gates import make_gate
from paceline.measure.clock import Clock
from paceline.server.catalog import STATES
from paceline.server.desk import Desk
from paceline.server.kept import Kept
from paceline.server.rules import Hyper, Layers, make_rule
from paceline.server.serve import serve
from paceline.server.shards import Sizes
from paceline.server.tally import Tally
from paceline.transport.control import Control
from paceline.transport.memory import FLOAT_BYTES
from paceline.transport.sockets import listen
from paceline.transport.tls import Identity, server_context
from paceline.types import Progress, record


def server(assignment: dict[str, Any], fds: dict[str, int], control: Control) -> None:
    """Serve the range [start, stop) of the flat parameters."""
    start, stop = assignment["start"], assignment["stop"]
    workers = assignment["workers"]
    hyper = Hyper.of(assignment["hyper"])
    layers = Layers(tuple(assignment["layers"]), start)
    tally = Tally()
    kept = None
    if "kept" in fds:
        states = STATES[assignment["rule"]]
        sizes = Sizes.of(stop - start, assignment["block"], states, workers)
        kept = Kept.within(fds["kept"], fds["marks"], sizes)
    desk = Desk(
        stop - start,
        workers,
        lambda: make_gate(
            assignment["gate"],
            workers,
            assignment["bound"],
            assignment["backup"],
            assignment["whole"],
            assignment["balance"],
        ),
        lambda size: make_rule(assignment["rule"], size, hyper, layers=layers),
        tally,
        block=assignment["block"],
        codec=None if assignment["codec"] == "none" else make_codec(assignment["codec"]),
        damp=assignment["damp_stale"],
        kept=kept,
    )
    desk.meet(assignment["lives"], assignment["left"])
    listener, address = listen(assignment["address"])
    clock = Clock(assignment["t0"])
    began = clock.now()
    control.send("ready", address=address)

    def tick() -> bool:
        progress = Progress(step=desk.applied, sent=tally.sent, received=tally.received)
        control.send("progress", **record(progress))
        while (lost := control.take("lost")) is not None:
            desk.lose(lost["worker"], lost["life"])
        while (left := control.take("left")) is not None:
            desk.leave(left["worker"])
        return control.take("stop") is not None or control.ended

    identity = assignment["identity"]
    serve(
        listener,
        desk,
        bytes.fromhex(assignment["secret"]),
        tally,
        tick,
        control.fileno(),
        tls=server_context(Identity(**identity)) if identity else None,
    )
    control.send(
        "done",
        holds=(stop - start) * FLOAT_BYTES,
        applied=desk.applied,
        sent=tally.sent,
        received=tally.received,
        phases=tally.phases,
        seconds=clock.now() - began,
    )
