"""What to do about a role that is gone. Decides; the supervisor acts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from paceline.exchange.layout import in_a_group
from paceline.launch.crew import Member
from paceline.spec import RunSpec


class Answer(Enum):
    START_AGAIN = "start again"
    GIVE_UP = "give up"  # the run cannot go on


@dataclass(frozen=True, slots=True)
class Policy:
    """`own_loop`: workers run a script, which could only begin from its beginning."""

    max_restarts: int
    own_loop: bool = False

    def on_loss(self, spec: RunSpec, member: Member) -> Answer:
        """`spec` is the one as run. A role that failed by itself would only fail again."""
        innocent = member.killed or member.lost_a_peer
        if member.life >= self.max_restarts or self.own_loop or not innocent:
            return Answer.GIVE_UP
        return Answer.START_AGAIN if can_rejoin(spec, member.kind) else Answer.GIVE_UP


def can_rejoin(spec: RunSpec, kind: str) -> bool:
    """Whether the rest of the run can take a role of this kind back in.

    A worker that exchanges nothing with others goes on from its checkpoint; any other goes on with
    what the others have. An evaluator needs nothing but the next snapshot.
    """
    over_tcp = spec.kind.served and spec.transport == "tcp"
    if kind == "server":
        return over_tcp
    if kind == "evaluator":
        return True
    over_shm = bool(spec.kind.transports) and spec.transport == "shm"
    return over_tcp or over_shm or spec.kind.alone or in_a_group(spec)
