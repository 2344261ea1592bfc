"""Faults to be done to a run on purpose: what `--inject` says, read and checked. Pure.

kill:worker-1@step=50          right before its step 50
kill:server-0@3s               three seconds after training began
stop:worker-2@10s+5s           stopped for five seconds; without +5s for good
slow:worker-0x1.78             its computing takes 1.78 times as long, all the time
slow:worker-0x1.78@10s+5s      or for a while
slow:server-0x8                its updates take 8 times as long
limit:server-0=100mbit         what it sends and receives, each way, all the time
cut:worker-1-server-0@5s+2s    their connection is closed, and opened again two seconds later
mute:worker-1-server-0@5s+2s   nothing gets through it for two seconds, and nobody is told
disk-full@8s                   the run's folder takes nothing more; with +5s for a while
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paceline.errors import SpecError, unknown

if TYPE_CHECKING:
    from paceline.spec.runspec import RunSpec

SHAPES = {
    "kill": "kill:ROLE@3s or kill:ROLE@step=50",
    "stop": "stop:ROLE@3s+5s or stop:ROLE@step=50+5s",
    "slow": "slow:ROLEx1.5 or slow:ROLEx1.5@3s+5s",
    "limit": "limit:ROLE=100mbit",
    "cut": "cut:worker-0-server-0@3s+2s",
    "mute": "mute:worker-0-server-0@3s+2s",
    "disk-full": "disk-full@3s or disk-full@3s+5s",
}
LINES = ("cut", "mute")  # what is done to a connection, for a while
ROLE = re.compile(r"(worker|server|standby)-(0|[1-9]\d{0,5})|evaluator")
LINE = re.compile(r"((?:worker|standby)-(?:0|[1-9]\d{0,5}))-(server-(?:0|[1-9]\d{0,5}))")
SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?s")
STEP = re.compile(r"step=([1-9]\d{0,11})")
RATE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(k|m|g)bit")
UNITS = {"k": 1e3 / 8, "m": 1e6 / 8, "g": 1e9 / 8}  # bytes a second
STEADY = {"slow": "slow", "limit": "limited"}  # what may hold all the time


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """One fault. `at` are seconds after training began; `lasts` is None where it has no end."""

    text: str
    kind: str
    role: str = ""  # none: the disk
    peer: str = ""  # of a connection: the server at its other end
    factor: float = 1.0
    rate: float = 0.0  # bytes a second, each way
    at: float = 0.0
    step: int | None = None  # instead of `at`
    lasts: float | None = None

    @property
    def own(self) -> bool:
        """Whether the role does it to itself: only a worker knows its step before it takes it."""
        return self.step is not None and self.role.startswith("worker-")

    @property
    def roles(self) -> tuple[str, ...]:
        """Those that it is done to."""
        return tuple(role for role in (self.role, self.peer) if role)


def injection(text: str) -> Injection:
    """The fault that this text asks for; SpecError with all that is wrong with it."""
    found, faults = _read(text)
    if faults:
        raise SpecError(faults)
    return found


def inject_faults(texts: Iterable[str]) -> list[str]:
    """Everything that is wrong with how these are written."""
    return [fault for text in texts for fault in _read(text)[1]]


def role_faults(spec: RunSpec) -> list[str]:
    """Roles that are to be harmed and that this run does not have."""
    read = [_read(text) for text in spec.inject]
    sound = [(found, role) for found, faults in read if not faults for role in found.roles]
    told = [(found, _missing(role, spec) or _unlimited(found, spec)) for found, role in sound]
    return [f"--inject {found.text}: {missing}" for found, missing in told if missing]


def line_limits(texts: Iterable[str], workers: int, servers: int) -> dict[tuple[int, int], float]:
    """Bytes a second, each way, of the connections that are limited, by worker and server.

    A role's limit is shared out evenly among its connections; one between two limited roles has
    the smaller share.
    """
    asked = {f.role: f.rate for f in map(injection, texts) if f.kind == "limit"}
    none = math.inf
    found = {
        (w, s): min(
            asked.get(f"worker-{w}", none) / servers, asked.get(f"server-{s}", none) / workers
        )
        for w in range(workers)
        for s in range(servers)
    }
    return {line: rate for line, rate in found.items() if rate < none}


def _unlimited(found: Injection, spec: RunSpec) -> str:
    if found.kind != "limit" or (spec.kind.served and spec.transport == "tcp"):
        return ""
    return "only connections to servers can be limited; say --transport tcp, with servers."


def _missing(role: str, spec: RunSpec) -> str:
    kind, _, number = role.partition("-")
    apart = spec.transport == "tcp"
    if kind == "server" and spec.kind.served and not apart:
        return (
            "over shared memory servers live inside the workers and cannot be harmed alone; "
            "say --transport tcp, or harm a worker."
        )
    # How many servers there are may only be known once the model is.
    servers = (spec.servers or math.inf) if spec.kind.served and apart else 0
    there = {
        "worker": spec.workers,
        "server": servers,
        "standby": servers if spec.replicas else 0,
        "evaluator": int(spec.evaluator),
    }
    if int(number or 0) < there[kind]:
        return ""
    known = [_names(name, count) for name, count in there.items() if count]
    return f"this run has no {role}; it has {', '.join(known)}."


def _names(kind: str, count: float) -> str:
    """`worker-0`, `worker-0 to worker-3`, `servers`, `evaluator`"""
    if kind == "evaluator":
        return kind
    if count == math.inf:
        return f"{kind}s"
    return f"{kind}-0" if count == 1 else f"{kind}-0 to {kind}-{count - 1}"


def _read(text: str) -> tuple[Injection, list[str]]:
    """What the text says as far as it can be told, and what is wrong with it."""
    what, has_moment, moment = text.partition("@")
    kind, _, whom = what.partition(":")
    begins, has_end, lasts = moment.partition("+")
    if kind not in SHAPES:
        fault = unknown("fault", kind, SHAPES)
        return Injection(text=text, kind=kind), [f"--inject {text}: {fault}"]
    faults: list[str] = []

    def check(wrong: bool, why: str) -> None:
        if wrong:
            faults.append(f"--inject {text}: {why}; say {SHAPES[kind]}.")

    role, peer, factor, rate = whom, "", 1.0, 0.0
    if kind == "limit":
        role, _, speed = whom.partition("=")
        told = RATE.fullmatch(speed)
        rate = float(told[1]) * UNITS[told[2]] if told else 0.0
        check(rate < 1, f"'{speed}' is no speed")
        check(bool(has_moment), "it holds all the time")
    if kind == "slow":
        role, _, times = whom.rpartition("x")
        factor = _number(times)
        check(not 1 < factor <= 1000, f"'{times}' is no factor above 1")
    if kind == "disk-full":
        check(bool(whom), f"it has no role, so '{whom}' means nothing")
    elif kind in LINES:
        line = LINE.fullmatch(whom)
        check(
            line is None, f"'{whom}' is no connection: those of workers and standbys to servers are"
        )
        role, peer = line.groups() if line else ("", "")
        own = role.partition("-")[::2] == ("standby", peer.partition("-")[2])
        check(role.startswith("standby") and not own, f"{role} has no connection to {peer}")
    else:
        known = ROLE.fullmatch(role) is not None
        check(not known, f"'{role}' is no role: worker-0, server-0, standby-0 and evaluator are")
        able = role.startswith(("worker-", "server-"))
        check(
            kind in STEADY and known and not able,
            f"only workers and servers can be {STEADY.get(kind)}, not {role}",
        )
    step = STEP.fullmatch(begins) if kind in ("kill", "stop") else None
    needed = kind != "limit" and (has_moment or kind != "slow")
    check(bool(needed and not step and not SECONDS.fullmatch(begins)), f"'{begins}' is no moment")
    check(bool(has_end) and kind == "kill", "a kill has no end")
    check(
        (bool(has_end) or kind in LINES)
        and kind not in ("kill", "limit")
        and not (SECONDS.fullmatch(lasts) and _number(lasts[:-1])),
        f"'{lasts}' is no time it could last",
    )
    if faults:
        return Injection(text=text, kind=kind), faults
    return Injection(
        text=text,
        kind=kind,
        role=role,
        peer=peer,
        factor=factor,
        rate=rate,
        at=_number(begins[:-1]) if has_moment and not step else 0.0,
        step=int(step[1]) if step else None,
        lasts=_number(lasts[:-1]) if has_end else None,
    ), []


def _number(text: str) -> float:
    """NaN where it is none."""
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text) else math.nan
