"""The roles server and standby: a table behind a gate, until the supervisor says that all are done.

A standby is a server that serves nobody: it follows one, and serves in its place once it is told.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from paceline.exchange.codecs.make import make_codec
from paceline.exchange.gates import make_gate
from paceline.files import pretend_full
from paceline.launch.server_keeping import ServerKeeper, take_up
from paceline.measure.clock import Clock
from paceline.measure.own import own
from paceline.measure.stopwatch import Stopwatch
from paceline.server.adopting import Source, adopt
from paceline.server.catalog import STATES
from paceline.server.connection import STANDBY
from paceline.server.desk import Desk
from paceline.server.follow import follow
from paceline.server.kept import Kept
from paceline.server.rules import Hyper, Layers, make_rule
from paceline.server.serve import serve
from paceline.server.shadow import Shadow
from paceline.server.shards import Sizes, Span
from paceline.server.striping import Size, undo_words
from paceline.server.tally import Tally
from paceline.store.spans import SpanWriter
from paceline.transport import memory
from paceline.transport.board import Board
from paceline.transport.control import Control, Message
from paceline.transport.memory import FLOAT_BYTES
from paceline.transport.slate import FOLLOW, SERVE, WRITE, Slate
from paceline.transport.sockets import Line, listen
from paceline.transport.tls import Identity, server_context
from paceline.types import SERVING, Progress, Traffic, record

if TYPE_CHECKING:
    from paceline.server.rowstore import RowStore


def server(assignment: dict[str, Any], fds: dict[str, int], control: Control, slate: Slate) -> None:
    """Serve some blocks of the flat parameters, which lie side by side."""
    with _recorded(assignment, assignment["role"]) as watch:
        tally = Tally(watch=watch)
        desk = _desk(assignment, fds, control, tally)
        desk.meet(assignment["lives"], assignment["left"])
        if assignment["checkpoint"]:
            take_up(desk, assignment["checkpoint"])
        listener, address = listen(assignment["address"])
        control.send("ready", address=address)
        _serve(assignment, control, slate, desk, tally, listener)


@contextmanager
def _recorded(assignment: dict[str, Any], role: str) -> Iterator[Stopwatch]:
    """Where a server's time goes is told to the run's folder."""
    clock = Clock(assignment["t0"])
    with closing(SpanWriter.of({**assignment, "role": role}, SERVING, clock)) as spans:
        watch = Stopwatch(SERVING, spans.append)
        yield watch
        watch.end()


def standby(
    assignment: dict[str, Any], fds: dict[str, int], control: Control, slate: Slate
) -> None:
    """Hold what the server at `follows` holds, and be ready to serve it at an address of its own.

    Nobody is answered there before that: whoever comes early waits.
    """
    with _recorded(assignment, assignment["role"]) as watch:
        tally = Tally(watch=watch)
        desk = _desk(assignment, fds, control, tally)
        shadow = Shadow(desk, assignment["room"])
        listener, address = listen(assignment["address"])
        control.send("ready", address=address)
        now = _follow(assignment, control, slate, shadow, tally)
    if now is None:
        return
    with _recorded(assignment, f"server-{assignment['index']}") as watch:  # whose place it takes
        desk.meet(now["lives"], now["left"])  # first: what is taken over has marks of all of them
        shadow.take_over()
        tally.begin(watch)
        control.send("ready", address=address)
        _serve(assignment, control, slate, desk, tally, listener)


def _follow(
    assignment: dict[str, Any], control: Control, slate: Slate, shadow: Shadow, tally: Tally
) -> Message | None:
    """Until it is told to take over, or that all are done."""
    clock = Clock(assignment["t0"])
    began = clock.now()
    identity = assignment["identity"]
    connect = partial(
        Line.connect,
        assignment["follows"],
        f"server-{assignment['index']}",
        bytes.fromhex(assignment["secret"]),
        identity["certificate"] if identity else "",
        assignment["lease"],
        tally.of(f"server-{assignment['index']}"),
    )
    slate.at(FOLLOW)

    def tick() -> bool:
        slate.beat()
        _tell_progress(assignment, control, shadow.applied, tally)
        return control.ended or control.holds("stop") or control.holds("promote")

    def tell(why: str) -> None:
        control.send("astray", why=why)

    follow(shadow, connect, assignment["life"], tally, tick, tell, control.fileno())
    if (now := control.take("promote")) is None:
        _done(assignment, control, shadow.applied, tally, clock.now() - began)
    return now


def _desk(assignment: dict[str, Any], fds: dict[str, int], control: Control, tally: Tally) -> Desk:
    spans = [(start, stop) for start, stop in assignment["spans"]]
    first, size, workers = spans[0][0], spans[-1][1] - spans[0][0], assignment["workers"]
    hyper = Hyper.of(assignment["hyper"])
    layers = Layers(tuple(assignment["layers"]), first)
    kept = None
    if "kept" in fds:
        kept = _kept(assignment, spans, fds["kept"], fds["marks"])
        sources = []
        for number, told in enumerate(assignment.get("sources", ())):
            held = [(start, stop) for start, stop in told]
            left = fds[f"kept-{number}"], fds[f"marks-{number}"]
            sources.append(Source(held, _kept(assignment, held, *left)))
        adopt(kept, spans, assignment["room"], sources)

    def tell(kind: str, number: int, life: int) -> None:
        control.send(kind, number=number, life=life)

    return Desk(
        size,
        workers,
        lambda: make_gate(
            assignment["gate"],
            workers,
            assignment["bound"],
            assignment["backup"],
            assignment["whole"],
            assignment["balance"],
        ),
        lambda count: make_rule(assignment["rule"], count, hyper, layers=layers),
        tally,
        codec=None if assignment["codec"] == "none" else make_codec(assignment["codec"]),
        damp=assignment["damp_stale"],
        kept=kept,
        tell=tell if assignment["replicas"] else None,
        lease=assignment["lease"],
        limits={int(worker): rate for worker, rate in assignment["limits"].items()},
        room=assignment["room"],
        spans=[slice(start - first, stop - first) for start, stop in spans],
        tables=_tables(assignment, fds, hyper, kept) if assignment["tables"] else None,
    )


def _tables(
    assignment: dict[str, Any], fds: dict[str, int], hyper: Hyper, kept: Kept | None
) -> RowStore:
    """This server's part of sparse tables, as a former one has left it."""
    from paceline.server.rowrules import RowRule
    from paceline.server.rowstore import RowStore, places_in
    from paceline.server.undo import Undo

    sizes = [Size(*size) for size in assignment["tables"]]
    states = STATES[assignment["rule"]]
    rule = RowRule(assignment["rule"], hyper)
    held = [size.held(states) for size in sizes]
    if kept is None:
        stretches, nothing = [memory.own_stretch(floats) for floats in held], torch.empty(0)
        return RowStore(places_in(sizes, states, stretches, [nothing] * len(sizes)), rule)
    notes = memory.stretches(fds["notes"], [size.journal(states, 1) for size in sizes])
    journals = [note.floats for note in notes]
    places = places_in(sizes, states, memory.stretches(fds["rows"], held), journals)
    board = Board(fds["flags"], undo_words(len(sizes)), 0.0)
    undo = Undo(board, 0, places, 1, kept.words)
    undo.mend(0)
    return RowStore(places, rule, undo)


def _kept(assignment: dict[str, Any], spans: Sequence[Span], floats: int, words: int) -> Kept:
    """The memory of a server with these blocks."""
    size, states = spans[-1][1] - spans[0][0], STATES[assignment["rule"]]
    return Kept.within(floats, words, Sizes.cut(size, len(spans), states, assignment["room"]))


def _serve(
    assignment: dict[str, Any],
    control: Control,
    slate: Slate,
    desk: Desk,
    tally: Tally,
    listener: socket.socket,
) -> None:
    clock = Clock(assignment["t0"])
    began = clock.now()
    keeper = ServerKeeper(control, desk)
    awaiting = Awaiting(control, desk)
    slate.at(SERVE)

    def tick() -> bool:
        slate.beat()
        _tell_progress(assignment, control, desk.applied, tally)
        awaiting.turn()
        now = time.monotonic()
        told = control.poll()  # in order: who left last must not be met again
        for message in told:
            _heed(desk, keeper, message, now, Path(assignment["folder"]))
        keeper.turn()
        for worker in desk.missing(now):
            control.send("absent", worker=worker)
        while desk.returned:
            control.send("present", worker=desk.returned.pop())
        return control.ended or any(message["kind"] == "stop" for message in told)

    identity = assignment["identity"]
    serve(
        listener,
        desk,
        bytes.fromhex(assignment["secret"]),
        tally,
        tick,
        control.fileno(),
        tls=server_context(Identity(**identity)) if identity else None,
        lease=assignment["lease"],
    )
    slate.at(WRITE)
    keeper.close()
    _done(assignment, control, desk.applied, tally, clock.now() - began)


class Awaiting:
    """Tells the supervisor for whom a round waits here, if it is the same at two ticks in a row;
    where rounds close all the time it never is."""

    NOBODY: tuple[int, list[int]] = (0, [])

    def __init__(self, control: Control, desk: Desk) -> None:
        self._control = control
        self._desk = desk
        self._seen = self._told = self.NOBODY

    def turn(self) -> None:
        before, self._seen = self._seen, self._desk.awaited()
        lasting = self._seen if self._seen == before else self.NOBODY
        if lasting != self._told:
            self._told = lasting
            self._control.send("awaits", round=lasting[0], peers=lasting[1])


def _heed(desk: Desk, keeper: ServerKeeper, message: Message, now: float, folder: Path) -> None:
    """What the supervisor says to a server."""
    match message["kind"]:
        case "keep":
            keeper.hear(message)
        case "lost":
            desk.lose(message["worker"], message["life"])
        case "left":
            desk.leave(message["worker"])
        case "alone":
            desk.permit(message["number"])
        case "absent":
            desk.miss(message["worker"])
        case "present":
            desk.meet_again(message["worker"])
        case "harm":
            desk.harm(message["cut"], message["mute"], now, message["slow"])
            pretend_full(folder, message["full"])


def _tell_progress(
    assignment: dict[str, Any], control: Control, applied: int, tally: Tally
) -> None:
    progress = Progress(
        step=applied,
        sent=tally.sent,
        received=tally.received,
        traffic=_traffic(assignment, tally),
        own=own(),
    )
    control.send("progress", **record(progress))


def _traffic(assignment: dict[str, Any], tally: Tally) -> tuple[Traffic, ...]:
    """A standby does not say its number, since it is that of its server."""
    mine = f"{STANDBY}-{assignment['index']}"
    return tuple(t._replace(peer=mine) if t.peer == STANDBY else t for t in tally.traffic())


def _done(
    assignment: dict[str, Any], control: Control, applied: int, tally: Tally, seconds: float
) -> None:
    dense = assignment["spans"][-1][1] - assignment["spans"][0][0]
    rows = sum(Size(*size).held(0) for size in assignment["tables"])
    control.send(
        "done",
        holds=(dense + rows) * FLOAT_BYTES,
        applied=applied,
        sent=tally.sent,
        received=tally.received,
        traffic=_traffic(assignment, tally),
        phases=tally.phases,
        seconds=seconds,
    )
