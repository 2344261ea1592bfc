"""Roles that are gone: does what the policy decides, until they are back or the run has to end.

dies ─► policy: start again, or its standby takes its place ─► ready ─► welcome
                give up ─► the sentence that the run ends with
"""

from __future__ import annotations

from collections.abc import Callable

from paceline.errors import PacelineError, RequestError, RoleDied, RunFailed, revive
from paceline.launch.course import Course
from paceline.launch.crew import Crew, Member, say
from paceline.launch.harm import Harm
from paceline.launch.keeping import Keeping
from paceline.launch.policy import Answer, Policy, lost_with, untold
from paceline.launch.resizing import Resizing
from paceline.launch.starter import Starter
from paceline.launch.succession import Succession
from paceline.store.folder import RunFolder

LOG_LINES = 12
AGAIN = "start the run again, or take it up with paceline resume if it has a checkpoint"


class Losses:
    """`tell` takes a role, what kind of event it is, and the detail; `forget` whom not to listen
    to any more."""

    def __init__(
        self,
        course: Course,
        crew: Crew,
        folder: RunFolder,
        starter: Starter,
        succession: Succession,
        keeping: Keeping,
        resizing: Resizing,
        harm: Harm,
        tell: Callable[[str, str, str], None],
        forget: Callable[[Member], None],
    ) -> None:
        self._course = course
        self._crew = crew
        self._folder = folder
        self._starter = starter
        self._succession = succession
        self._keeping = keeping
        self._resizing = resizing
        self._harm = harm
        self._tell = tell
        self._forget = forget
        self._policy = Policy(course.asked.max_restarts, own_loop=course.own_loop)

    def mended(self, member: Member) -> bool:
        """Whether the run goes on although this role has failed."""
        if not self._course.begun and member.kind in ("worker", "evaluator"):
            return self._not_begun(member)
        if self._not_missed(member):
            member.state = "done"
            return True
        return self._taken_back(member)

    def _taken_back(self, member: Member) -> bool:
        """Whether the others can do with another life of it, or without it."""
        course = self._course
        back = not self._keeping.taken_up or self._starter.put_back(course.spec)
        if member.kind == "worker" and not back:
            return False
        answer = self._policy.on_loss(course.spec, member, self._crew)
        if self._resizing.does_without(member, answer):
            return True
        if answer is Answer.GIVE_UP:
            return False
        if member.kind == "worker" and not self._starter.burying.lost(course.spec, member):
            how = f"{member.end_in_words()}, and no other worker had the parameters; {AGAIN}."
            raise self._death(member, how)
        again = f"started again ({member.restarts + 1} of {course.spec.max_restarts})"
        if answer is Answer.PROMOTE:
            again = "its standby takes its place"
        self._tell(member.role, "died", f"{member.end_in_words()}; {again}")
        self._forget(member)
        self._keeping.lost(member)
        member.close()
        self._replace(member, answer)
        return True

    def _not_begun(self, member: Member) -> bool:
        """Whether a role is started once more that nobody has met yet."""
        course = self._course
        if not self._policy.again(member):
            return False
        again = f"started again ({member.restarts + 1} of {course.asked.max_restarts})"
        self._tell(member.role, "died", f"{member.end_in_words()}; {again}")
        self._forget(member)
        member.close()
        if member.kind == "evaluator":
            self._starter.evaluator(course.asked)
        else:
            self._starter.worker(course.asked, course.work, member.index)
        self._crew[member.role].early = member.early + 1
        return True

    def _not_missed(self, member: Member) -> bool:
        """Whether nobody needs it any more."""
        if self._succession.ending and member.kind in ("server", "standby"):
            return True
        if member.kind == "evaluator" and self._course.parting and member.killed:
            self._tell(member.role, "died", f"{member.end_in_words()}; nothing is left to score")
            return True
        return False

    def _replace(self, gone: Member, answer: Answer) -> None:
        course, starter, life = self._course, self._starter, gone.life + 1
        assert course.facts is not None
        if answer is Answer.PROMOTE:
            self._succession.promote(course.spec, course.facts, gone)
        elif gone.kind == "standby":
            self._succession.again(course.spec, course.facts, gone)
        elif gone.kind == "server":
            address = gone.address or starter.address(course.spec, gone.index)
            # One that was never up may have died over what it was to go on from.
            kept = None if gone.address else self._keeping.first(gone.role)
            starter.server(course.spec, course.facts, gone.index, address, life, gone.born, kept)
        elif gone.kind == "evaluator":
            starter.evaluator(course.asked, life)
        else:
            say(self._crew.servers(), "lost", worker=gone.index, life=gone.life)
            starter.worker(course.asked, course.work, gone.index, life, gone.born)
            self._crew[gone.role].leaving = gone.leaving

    def welcome(self, member: Member) -> None:
        """A role in another life is up: it goes on where the others are."""
        course = self._course
        assert course.facts is not None
        if member.kind == "worker":
            self._starter.burying.back(member)
            self._harm.brief(member)
            source = self._keeping.source(course.spec, member)
            self._starter.roster(course.spec, course.facts, member, source)
            self._resizing.welcome(member)
            if course.told_to_stop:
                member.control.send("stop")
            if course.snapshot_wanted and member.role == self._crew.leader:
                member.control.send("snapshot")
        elif member.kind == "server":
            self._starter.served(member)
            self._succession.brief(member)
            self._harm.brief(member)
        # A standby's return is told when it is in step, that of one that comes when it takes part.
        if member.kind != "standby" and member.restarts:
            self._tell(member.role, "back", "up again")

    # The end of a run.

    def untold(self) -> bool:
        """Whether a role may yet tell more of what went with the one that ends the run."""
        return self._course.facts is not None and untold(self._course.spec, self._crew)

    def cause(self, culprit: Member) -> PacelineError:
        """What a run ends with that cannot go on without this role."""
        if culprit.failure is not None and culprit.blame() == 1:
            error = revive(*culprit.failure)
            if isinstance(error, RequestError):
                return error
            if error is not None:
                return RunFailed(f"{culprit.role}: {error}")
        known = self._course.facts is not None
        lost = lost_with(self._course.spec, culprit, self._crew) if known else ""
        return self._death(culprit, f"{culprit.end_in_words()}{lost}.")

    def _death(self, member: Member, how: str) -> RoleDied:
        inside = self._crew.inside(member)
        also = f" with {' and '.join(inside)} inside it" if inside else ""
        return RoleDied(member.role + also, how, self._log_tail(member))

    def _log_tail(self, member: Member) -> list[str]:
        try:
            text = self._folder.log_path(member.log or member.role).read_text(errors="replace")
        except OSError:
            return []
        return text.splitlines()[-LOG_LINES:]
