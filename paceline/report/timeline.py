"""When a worker was at what: the phases of its steps, laid out in time.

    previous end │ data copy │ forward backward │ encode push (ahead) wait pull update │ end
                                                ▲ arrival

A row knows when its step ended, when the worker reached the exchange, and how long each phase took.
An exchange that took longer than its phases together made the next batch meanwhile (`ahead`), and
that much of the next step's data is not drawn again. Within an exchange only the sums are known, so
its phases stand in their usual order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.store.spans import Spans
from paceline.store.steps import Steps

Edges = npt.NDArray[np.int64]  # [rows, names + 1], nanoseconds

ROUNDING = 1e-6  # seconds that single precision may be off by
FETCH = ("data", "copy")
FINE = (*FETCH, "forward", "backward", "encode", "push", "ahead", "wait", "pull", "update")
COARSE = ("data", "compute", "exchange", "ahead", "wait", "update")  # of older runs


class Before(NamedTuple):
    """Where the steps before these have left off: when, and how much data was made ahead."""

    end: float = 0.0
    ahead: float = 0.0


def lay_out(steps: Steps, before: Before) -> tuple[tuple[str, ...], Edges, Before]:
    """Names, and for each step where each of them begins, and where the last one ends."""
    known = not np.isnan(steps["forward"]).any()
    names = FINE if known else COARSE
    spent = {name: np.asarray(steps[name], np.float64) for name in names if name != "ahead"}
    end, arrival = steps["time"], steps["arrival"]
    first = names.index("encode" if known else "exchange")
    exchanged = sum(spent[name] for name in names[first:] if name != "ahead")
    spare = end - arrival - exchanged
    spare[np.abs(spare) < ROUNDING] = 0.0
    spent["ahead"] = np.maximum(spare, 0.0)
    reached = np.where(spare >= 0, arrival, end - exchanged)  # earlier if backward overlapped it
    fetch = [name for name in names[:first] if name in FETCH]
    computed = sum(spent[name] for name in names[len(fetch) : first])
    earlier = np.concatenate(([before.ahead], spent["ahead"][:-1]))
    for name in fetch:
        made = np.minimum(spent[name], earlier)
        spent[name], earlier = spent[name] - made, earlier - made
    begin = reached - computed - sum(spent[name] for name in fetch)
    ends = begin[:, None] + np.cumsum([spent[name] for name in names], axis=0).T
    edges = np.column_stack((begin, ends))
    floor = np.concatenate(([before.end], end[:-1]))
    edges = np.clip(edges, floor[:, None], np.maximum(end, floor)[:, None])
    edges[:, -1] = np.maximum(end, floor)
    return names, _whole(edges), Before(float(end[-1]), float(spent["ahead"][-1]))


def lay_spans(spans: Spans) -> tuple[tuple[str, ...], Edges]:
    """The same of rows that tell how long a role was at what since they began."""
    names: tuple[str, ...] = (spans.dtype.names or ())[1:]
    begin = spans["begin"]
    ends = begin[:, None] + np.cumsum([spans[name] for name in names], axis=0, dtype=np.float64).T
    edges = np.column_stack((begin, ends))
    edges[:-1] = np.minimum(edges[:-1], begin[1:, None])  # single precision adds up to a bit more
    return names, _whole(edges)


def _whole(seconds: npt.NDArray[np.float64]) -> Edges:
    nanoseconds: Edges = np.rint(seconds * 1e9).astype(np.int64)
    return np.maximum.accumulate(nanoseconds, axis=1)
