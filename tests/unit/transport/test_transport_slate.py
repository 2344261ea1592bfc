"""The slate: what a role wrote stands there, whatever becomes of the role."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from paceline.measure import stack
from paceline.transport import memory
from paceline.transport.slate import (
    BELL,
    COMPUTE,
    EXCHANGE,
    OTHERS,
    PROCESS,
    SERVER,
    WAIT,
    WORKER,
    Slate,
    doing,
    peer,
    process,
    server,
    worker,
)


@pytest.fixture(params=[True, False], ids=["memfd", "file"])
def slate(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slate]:
    if not request.param:
        monkeypatch.setattr(memory, "available", lambda: False)
    one = Slate.new()
    yield one
    one.close()
    one.close()


def test_what_is_written_is_read(slate: Slate) -> None:
    assert slate.read() == (0, 0, 0)
    slate.begin(812)
    slate.beat()
    assert slate.read() == (COMPUTE, 812, 1)
    assert slate.at(EXCHANGE) == COMPUTE
    before = slate.waits(server(3))
    at, round_, _ = slate.read()
    assert (doing(at), peer(at), round_) == (WAIT, (SERVER, 3), 812)
    slate.back(before)
    assert slate.read()[0] == EXCHANGE


@pytest.mark.parametrize(
    ("named", "kind", "which"),
    [(worker(4095), WORKER, 4095), (process(2**22), PROCESS, 2**22), (OTHERS, OTHERS, 0)],
)
def test_whoever_is_waited_for_is_found_again(named: int, kind: int, which: int) -> None:
    assert peer(WAIT | named) == (kind, which)
    assert doing(WAIT | named) == WAIT


def test_it_outlives_its_writer_and_has_its_stack(slate: Slate) -> None:
    assert slate.fd is not None
    pid = os.fork()
    if not pid:
        try:
            mine = Slate(slate.fd)
            stack.answer(slate.fd)
            mine.begin(7)
            mine.waits(worker(1))
            for _ in range(2):
                os.kill(os.getpid(), stack.SIGNAL or 0)
                slate.wipe()  # as the supervisor does before it asks again
            os.kill(os.getpid(), stack.SIGNAL or 0)
        finally:  # whatever happens, this is not a second run of the tests
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert slate.read() == (WAIT | worker(1), 7, 0)
    assert slate.written().count("most recent call first") == 1
    assert "test_it_outlives_its_writer_and_has_its_stack" in slate.written()
    slate.wipe()
    assert slate.written() == ""


def test_one_that_nobody_reads_is_written_all_the_same() -> None:
    alone = Slate()
    alone.begin(3)
    assert alone.read() == (COMPUTE, 3, 0)
    alone.close()


def test_the_bell_is_heard_by_whoever_has_the_slate() -> None:
    slate = Slate.new()
    assert slate.fd is not None
    role = Slate(os.dup(slate.fd))
    slate.ring()
    slate.ring()
    assert role.words[BELL] == 2
    role.close()
    slate.close()
    slate.ring()  # nobody is left to hear it
