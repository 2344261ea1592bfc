"""--damp-stale: a gradient's rate is divided by its staleness, wherever it is applied."""

from __future__ import annotations

import pytest
import torch

from paceline.exchange.gates import make_gate
from paceline.server.rules import Hyper, damped, make_rule
from paceline.server.table import Table
from paceline.server.tally import Tally
from paceline.server.window import Window
from paceline.transport.frames import Frame, Kind

SIZE = 3


@pytest.mark.parametrize(("staleness", "rate"), [(0, 0.6), (1, 0.6), (2, 0.3), (6, 0.1)])
def test_the_rate(staleness: int, rate: float) -> None:
    assert damped(0.6, staleness) == pytest.approx(rate)


class Deaf:
    """In place of a connection."""

    def send(self, frame: Frame, payload: memoryview, *, steady: bool) -> None:
        pass


@pytest.mark.parametrize("gate", ["at-once", "bounded"])
@pytest.mark.parametrize("damp", [False, True])
def test_a_server_divides_it(gate: str, damp: bool) -> None:
    """Worker 0 pushes four times; then worker 1, of the parameters from before."""
    params, grads = torch.zeros(1, SIZE), torch.zeros(2, SIZE)
    table = Table(params, grads, make_rule("sgd", SIZE, Hyper()))
    window = Window(0, table, make_gate(gate, 2, bound=9), Tally(), damp)
    window.init(torch.zeros(SIZE))
    for worker, sequence, version in ((0, 1, 0), (0, 2, 1), (0, 3, 2), (0, 4, 3), (1, 1, 0)):
        grads[worker] = -1.0
        frame = Frame(Kind.PUSH, worker, sequence, version, 1.0, 1.0)
        window.push(Deaf(), frame)  # type: ignore[arg-type]
    assert torch.equal(params[0], torch.full((SIZE,), 4.25 if damp else 5.0))
