"""What to do about a role that is gone. Decides; the supervisor acts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from paceline.exchange.layout import in_a_group
from paceline.launch.crew import Crew, Member
from paceline.spec import RunSpec
from paceline.transport import memory


class Answer(Enum):
    START_AGAIN = "start again"
    PROMOTE = "promote"  # its standby takes its place
    GIVE_UP = "give up"  # the run cannot go on


@dataclass(frozen=True, slots=True)
class Policy:
    """`own_loop`: workers run a script, which could only begin from its beginning."""

    max_restarts: int
    own_loop: bool = False

    def again(self, member: Member) -> bool:
        """Whether it may be started again. A role that failed by itself would only fail again."""
        innocent = member.killed or member.lost_a_peer
        return innocent and member.restarts < self.max_restarts and not self.own_loop

    def on_loss(self, spec: RunSpec, member: Member, crew: Crew) -> Answer:
        """`spec` is the one as run."""
        if not self.again(member):
            return Answer.GIVE_UP
        if in_a_group(spec) and member.kind == "worker" and _alone(spec, crew):
            return Answer.GIVE_UP  # nobody else has the parameters
        if member.kind == "server":
            if spec.replicas and _ready_to_take_over(crew.standby_of(member)):
                return Answer.PROMOTE
            return Answer.START_AGAIN if member.kept else Answer.GIVE_UP
        return Answer.START_AGAIN if can_rejoin(spec, member.kind) else Answer.GIVE_UP


def _ready_to_take_over(standby: Member) -> bool:
    return standby.in_step and not standby.gone


def _alone(spec: RunSpec, crew: Crew) -> bool:
    return max(spec.workers, len(crew.workers())) < 2


def can_rejoin(spec: RunSpec, kind: str) -> bool:
    """Whether the rest of the run can take a role of this kind back in.

    A worker that exchanges nothing with others goes on from its checkpoint; any other goes on with
    what the others have. A server must have left what it held, to memory that outlives it or to its
    standby. An evaluator needs nothing but the next snapshot.
    """
    over_tcp = spec.kind.served and spec.transport == "tcp"
    if kind == "server":
        return over_tcp and (spec.replicas > 0 or memory.available())
    if kind == "standby":
        return over_tcp and spec.replicas > 0
    if kind == "evaluator":
        return True
    over_shm = bool(spec.kind.transports) and spec.transport == "shm"
    return over_tcp or over_shm or spec.kind.alone or in_a_group(spec)


def keeps_memory(spec: RunSpec) -> bool:
    """Whether what a server holds lies in memory that its successor is handed."""
    return spec.max_restarts > 0 and memory.available()


def lost_with(spec: RunSpec, member: Member, crew: Crew) -> str:
    """What went with a server that nobody can go on from, to end the sentence of its death.

    It is what the workers were answered. Until all have told, it may be more.
    """
    if member.kind != "server" or not member.killed or member.kept or not spec.max_restarts:
        return ""
    workers = crew.workers()
    answered = max((w.answered[member.index] for w in workers if w.answered), default=0)
    many = f"the {answered:,}"
    if not all(w.answered for w in workers):
        # Of the last push of each that the server told of, it may not have had the answer.
        many = f"at least {max(answered, member.progress.step - len(workers)):,}"
    why = "no memory outlives it here"
    if spec.replicas:
        why += ", and its standby was gone or not yet in step"
    return f", and {why}: {many} updates that it had answered are lost"


def untold(spec: RunSpec, crew: Crew) -> bool:
    """Whether a worker may yet tell what a server had answered it that ends the run."""
    gone = crew.culprit()
    if gone is None or not lost_with(spec, gone, crew):
        return False
    return any(not (worker.answered or worker.gone) for worker in crew.workers())
