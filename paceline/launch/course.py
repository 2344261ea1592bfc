"""How far a run is: what the supervisor, and those who hear and mend for it, all have to know."""

from __future__ import annotations

from dataclasses import dataclass, field

from paceline.launch.starter import Work
from paceline.spec import RunSpec
from paceline.types import Facts


@dataclass(slots=True)
class Course:
    """`asked` is the spec as it came; `spec` is as resolved, once the workers are ready."""

    asked: RunSpec
    spec: RunSpec
    work: Work
    facts: Facts | None = None  # known once the workers are ready
    begun: bool = False  # whether workers know of each other
    told_to_stop: bool = False
    places: dict[str, int] = field(
        default_factory=dict
    )  # of those that part, once all have trained
    snapshot_wanted: bool = False  # by the evaluator, from the worker that leads

    @property
    def parting(self) -> bool:
        """Whether all have trained."""
        return bool(self.places)

    @property
    def own_loop(self) -> bool:
        """Whether workers run a script of the user's own."""
        return self.work.script is not None
