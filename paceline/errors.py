"""Everything Paceline raises on purpose.

PacelineError
├── RequestError            the request was wrong: exit code 2
│   ├── SpecError           one or more faults in a spec, all of them told
│   ├── UnknownName         a name that is not known, with the known ones
│   ├── TaskError           a task that cannot be loaded
│   └── DataError           a data file that is missing, unreadable or cut short
├── Interrupted             whoever started the run ended it at once: exit code 130
└── RunFailed               the run was right to start and could not go on: exit code 1
    ├── RoleDied            a role ended that should not have
    ├── PeerLost            a role lost the peer it was talking to
    ├── WireError           bytes that are not a frame of ours, or a peer that is not one of ours
    └── StoreError          the run's folder cannot be written or read

A message is one sentence that names the thing and, where there is one, the remedy.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PacelineError(Exception):
    """Base of all errors raised on purpose."""

    exit_code = 1


class RequestError(PacelineError):
    exit_code = 2


class SpecError(RequestError):
    """Carries every fault found, so that nobody mends a spec one line a try."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


class UnknownName(RequestError):
    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(unknown(kind, name, known))


class TaskError(RequestError):
    pass


class DataError(RequestError):
    pass


class Interrupted(PacelineError):
    exit_code = 130


class RunFailed(PacelineError):
    pass


class RoleDied(RunFailed):
    def __init__(self, role: str, reason: str, log: Iterable[str] = ()) -> None:
        self.role = role
        self.log = tuple(log)
        super().__init__(f"{role} {reason}")


class PeerLost(RunFailed):
    pass


class WireError(RunFailed):
    pass


class StoreError(RunFailed):
    pass


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """`unknown strategy 'ps-asink': did you mean 'ps-async'? Known: …`"""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    meant = f": did you mean '{close[0]}'?" if close else "."
    return f"unknown {kind} '{name}'{meant} Known: {', '.join(names)}."


BY_NAME: dict[str, type[PacelineError]] = {
    kind.__name__: kind
    for kind in (RequestError, TaskError, DataError, RunFailed, PeerLost, WireError, StoreError)
}


def revive(kind: str, message: str) -> PacelineError | None:
    """The error a role reported by name and sentence, or None if it is not one of ours."""
    if kind == "SpecError":
        return SpecError(message.split("\n"))
    if kind == "UnknownName":
        return RequestError(message)
    found = BY_NAME.get(kind)
    return found(message) if found else None
