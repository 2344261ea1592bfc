"""What is told of a stall, in one sentence that follows the role's name."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.launch.stalls import OTHERS, TURNS, Over, Sign, Stall
from paceline.transport import slate

NAMED = 4  # roles that are named, of very many
BUSY = 0.1  # of a core, below which a process only sleeps

DOING = {
    slate.BORN: "starting",
    slate.BUILD: "building its model and data",
    slate.READY: "waiting for the others to be ready",
    slate.MEET: "meeting the others",
    slate.DATA: "making its next batch",
    slate.COMPUTE: "computing (forward or backward)",
    slate.EXCHANGE: "exchanging and updating parameters",
    slate.WAIT: "waiting",
    slate.PARKED: "waiting for a new group",
    slate.SCORE: "scoring",
    slate.COPY: "copying for a checkpoint",
    slate.WRITE: "writing to disk",
    slate.OWN: "in the script's own code",
    slate.TRAINED: "waiting for the others to have trained",
    slate.SNAPSHOT: "waiting for parameters to score",
    slate.SERVE: "serving",
    slate.FOLLOW: "following its server",
    slate.ENDING: "done, and its process does not end",
    slate.IMPORT: "importing torch, before which no role can start",
    slate.COMPILE: "having loops compiled",
    slate.RESTORE: "reading its part of the checkpoint",
}
STUCK = "in one turn of its loop, hearing nobody,"  # of who turns, and does not
HELD = {"stopped": "stopped (SIGSTOP)", "traced": "stopped by a debugger"}
ASLEEP = "asleep in the kernel, where no signal reaches it"


def told(stall: Stall, rounds: str, cpu: float | None = None) -> str:
    """`has been stopped (SIGSTOP) for 5.2 s in round 812; worker-0 and worker-2 wait for it`.

    `rounds` is what steps are called: rounds, where workers go in them. `cpu` is how many cores
    the first of the roles has used since.
    """
    sign, many = stall.sign, len(stall.roles) > 1
    begin = f"{listed(stall.roles)} have" if many else "has"
    if stall.circle:
        what = f"been waiting for each other for {stall.seconds:.1f} s{_where(sign, rounds)}"
        return f"{begin} {what}: what one of them sent has not arrived{_behind(stall)}"
    if stall.on:
        whom = listed([other.role for other in stall.on])
        goes = "which goes on" if len(stall.on) == 1 else "which go on"
        now = f" ({_doing(stall.on[0], rounds)})" if len(stall.on) == 1 else ""
        waited = f"been waiting for {whom} for {stall.seconds:.1f} s{_where(sign, rounds)}"
        return f"{begin} {waited}, {goes}{now}"
    lasts = f"for {stall.seconds:.1f} s"
    if sign.held:
        lasts = f"for {sign.held_for:.1f} s, while {_doing(sign, rounds)}"
        return f"{begin} been {HELD[sign.state]} {lasts}{_behind(stall)}"
    asleep = f", {ASLEEP}" if sign.state == "asleep" else "" if many else _use(sign, cpu)
    where = _where(sign, rounds)
    return f"{begin} been {_what(sign)} {lasts}{where}{asleep}{_behind(stall)}"


def over(told: Over) -> str:
    """`after 12.1 s; worker-0 waited for it`"""
    many = len(told.roles) > 1
    begin = f"{listed(told.roles)}, " if many else ""
    waited = f"; {listed(told.waited)} waited for {_it(many)}" if told.waited else ""
    return f"{begin}after {told.seconds:.1f} s{waited}"


def meanwhile(sign: Sign, waiting: Sequence[str], rounds: str) -> str:
    """Of a role that is ended because it was stopped for too long: `, while computing in round 812
    and worker-0 waited for it`"""
    behind = f", and {listed(waiting)} waited for it" if waiting else ""
    return f", while {_doing(sign, rounds)}{behind}"


def listed(roles: Sequence[str]) -> str:
    """`worker-0, worker-1 and 5 more`"""
    shown = ["the others" if role == OTHERS else role for role in roles[:NAMED]]
    if len(roles) > NAMED:
        shown.append(f"{len(roles) - NAMED} more")
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _behind(stall: Stall) -> str:
    if not stall.waiting:
        return ""
    verb = "waits" if len(stall.waiting) == 1 else "wait"
    return f"; {listed(stall.waiting)} {verb} for {_it(len(stall.roles) > 1)}"


def _it(many: bool) -> str:
    return "them" if many else "it"


def _what(sign: Sign) -> str:
    if sign.doing == slate.WAIT and OTHERS in sign.waits:
        return "waiting for the others, who have all arrived,"
    if sign.doing in TURNS:
        return STUCK
    if sign.waits:
        return f"waiting for {listed(sign.waits)}"
    return DOING[sign.doing]


def _doing(sign: Sign, rounds: str) -> str:
    whom = f" for {listed(sign.waits)}" if sign.doing == slate.WAIT and sign.waits else ""
    return f"{DOING[sign.doing]}{whom}{_where(sign, rounds)}"


def _where(sign: Sign, rounds: str) -> str:
    return f" in {rounds} {sign.round}" if sign.round else ""


def _use(sign: Sign, cpu: float | None) -> str:
    """What a process that should be at work has of its cores."""
    if cpu is None or sign.waits or sign.doing == slate.WAIT:
        return ""
    return ", and uses no CPU" if cpu < BUSY else f", and uses {100 * cpu:.0f} % of a core"
