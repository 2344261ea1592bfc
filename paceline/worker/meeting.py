"""How a worker meets the others: from the supervisor's roster to its post in the exchange."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from paceline.exchange.base import Post
from paceline.exchange.layout import in_a_group, layout
from paceline.exchange.replica import Replica
from paceline.exchange.stripes import table_layout
from paceline.server.catalog import STATES
from paceline.server.rules import Hyper
from paceline.server.shards import Cut
from paceline.server.striping import Size
from paceline.spec import RunSpec
from paceline.transport import memory
from paceline.transport.control import Control
from paceline.transport.slate import Slate
from paceline.types import NOTHING, Parked, Plan, record

PLAN_SECONDS = 24 * 3600.0  # one of the others may be in a long step; its death ends the wait


class Meeting:
    """What workers that form a process group hear of it, from the supervisor and by way of it."""

    def __init__(self, spec: RunSpec, control: Control) -> None:
        self._control = control
        self._broken = NOTHING  # the last group that is known to be
        self._said: dict[tuple[int, str], bytes] = {}  # by generation, and what it is about
        if spec.on_loopback:  # gloo would otherwise pick the address of the host's name
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

    def park(self, parked: Parked) -> Plan:
        """Wait to be told of the next group."""
        self._control.send("parked", **record(parked))
        while True:
            told = self._control.wait("plan", seconds=PLAN_SECONDS)
            del told["kind"]
            plan = Plan.of(told)
            if plan.generation > parked.generation:  # else of a group that is over
                self._said = {
                    at: said for at, said in self._said.items() if at[0] >= plan.generation
                }
                return plan

    def broken(self, generation: int) -> bool:
        """Whether a member of this group is gone, or has lost another."""
        while (told := self._control.take("broken")) is not None:
            self._broken = told["generation"]
        return self._broken == generation

    def put(self, generation: int, key: str, value: bytes) -> None:
        """Tell all who are in a group."""
        self._said[generation, key] = value
        self._control.send("put", generation=generation, key=key, value=value.hex())

    def got(self, generation: int, key: str) -> bytes | None:
        """What one of them has told."""
        while (told := self._control.take("put")) is not None:
            self._said[told["generation"], told["key"]] = bytes.fromhex(told["value"])
        return self._said.get((generation, key))


class Servers:
    """Who has which blocks of the parameters, and where, as the supervisor has told it last."""

    def __init__(self, roster: dict[str, Any], control: Control) -> None:
        self._control = control
        self._take(roster)

    def _take(self, told: dict[str, Any]) -> None:
        self._cut = [[(start, stop) for start, stop in spans] for spans in told["spans"]]
        self._addresses: list[str] = list(told["addresses"])

    def held(self) -> Cut:
        """By server, its blocks."""
        while (told := self._control.take("servers")) is not None:
            self._take(told)
        return self._cut

    def where(self) -> list[str]:
        """By server of the cut that was told last, its address; none if it is not known yet."""
        while (moved := self._control.take("moved")) is not None:
            self._addresses[moved["server"]] = moved["address"]
        return self._addresses


def post_from(
    roster: dict[str, Any],
    spec: RunSpec,
    index: int,
    fds: dict[str, int],
    replica: Replica,
    control: Control,
    slate: Slate,
    apply: Callable[[], None] | None = None,
    life: int = 0,
) -> Post:
    """This worker's post, with the shared memory mapped where there is some."""
    size, tables = replica.size, [table.size for table in replica.tables]
    servers = Servers(roster, control)
    crew = tuple(roster["crew"])
    need = layout(spec, size, len(servers.held()), 0, roster["room"])

    def answered(versions: Sequence[int]) -> None:
        control.send("answered", versions=list(versions))

    shared = spec.transport == "shm"

    def rows(name: str, count: int) -> Tensor | None:
        return memory.rows(fds[name], count, size) if shared and count else None

    post = Post(
        index=index,
        workers=max(spec.workers, crew[-1] + 1),
        room=roster["room"],
        crew=crew,
        life=life,
        returns=spec.max_restarts > 0,
        lease=spec.lease,
        rule=spec.optimizer or "sgd",
        hyper=Hyper.of(roster["hyper"]),
        secret=bytes.fromhex(roster["secret"]),
        limits={int(server): rate for server, rate in roster["limits"].items()},
        certificate=roster["certificate"],
        shards=tuple((spans[0][0], spans[-1][1]) for spans in servers.held()),
        held=servers.held,
        addresses=tuple(servers.where()),
        where=servers.where,
        answered=answered,
        board=fds["board"] if shared else None,
        params=rows("params", need.params),
        grads=rows("grads", need.grads),
        state=rows("state", need.state),
        journal=memory.floats(fds["journal"], (need.journal,)) if shared and need.journal else None,
        cores=tuple(roster["cores"]),
        codec=spec.codec,
        bound=spec.bound or 0,
        backup=spec.backup,
        whole=spec.step_samples * spec.workers,
        balance=spec.balance,
        damp_stale=spec.damp_stale,
        spin=roster["spin"],
        apply=apply,
        groups=Meeting(spec, control) if in_a_group(spec) else None,
        regroups=apply is None,
        slate=slate,
    )
    return with_tables(post, spec, fds, tables) if shared and tables else post


def with_tables(post: Post, spec: RunSpec, fds: dict[str, int], sizes: Sequence[Size]) -> Post:
    """The same with the shared memory of sparse tables."""
    states, room = STATES[spec.optimizer or "sgd"], post.room
    need = table_layout(spec, sizes, room)
    held = [size.held(states) for size in sizes]
    post = replace(post, tables=memory.stretches(fds["tables"], held))
    if not need.board:
        return post
    pushes: tuple[Tensor, ...] = ()
    if need.pushed:
        parts = memory.stretches(fds["table-pushes"], [room * size.pushed for size in sizes])
        pushes = tuple(part.floats.view(room, -1) for part in parts)
    notes = memory.stretches(fds["table-journal"], [size.journal(states) for size in sizes])
    return replace(
        post,
        table_journals=tuple(note.floats for note in notes),
        table_pushes=pushes,
        table_board=fds["table-board"],
    )
