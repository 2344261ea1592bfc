"""The board: who waits is woken, who dies holds nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from paceline.errors import PeerLost
from paceline.transport import board as board_module
from paceline.transport import memory
from paceline.transport.board import Board, size_board
from paceline.transport.slate import BORN, EXCHANGE, WAIT, Slate, process, worker

pytestmark = [
    pytest.mark.timeout(30),
    pytest.mark.skipif(not memory.available(), reason="no memfd here"),
]


@pytest.fixture
def fd() -> Iterator[int]:
    one = memory.new_segment("test")
    size_board(one, 4)
    yield one
    os.close(one)


def child(act: Callable[[], Any]) -> int:
    """Run `act` in a process of its own, which then ends."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(0)
    return pid


def test_words_start_at_zero_and_are_shared(fd: int) -> None:
    one, two = Board(fd, 4, 0.0), Board(fd, 4, 0.0)
    assert not any(one.words)
    one.post(2, -5)
    assert two.words[2] == -5


@pytest.mark.parametrize("spin", [0.0, 0.01])
def test_a_waiter_is_woken(fd: int, spin: float) -> None:
    board = Board(fd, 4, spin)
    thread = threading.Thread(target=lambda: (time.sleep(0.1), Board(fd, 4, 0.0).post(1, 3)))
    thread.start()
    board.wait(1, 3, "three")
    assert board.words[1] == 3
    thread.join()


@pytest.mark.parametrize("value", [5, 2**31, 2**32, 2**62])
def test_a_word_that_is_far_enough_is_not_waited_for(fd: int, value: int) -> None:
    board = Board(fd, 4, 0.0)
    board.post(0, value)
    board.wait(0, 5, "five")


def test_two_processes_take_turns(fd: int) -> None:
    """A thousand rounds of ping and pong, each word with one writer."""
    rounds = 1000

    def pong() -> None:
        board = Board(fd, 4, 0.0)
        for turn in range(1, rounds + 1):
            board.wait(0, turn, "ping")
            board.post(1, turn)

    pid = child(pong)
    board = Board(fd, 4, 0.0)
    for turn in range(1, rounds + 1):
        board.post(0, turn)
        board.wait(1, turn, "pong")
    assert os.waitpid(pid, 0)[1] == 0


def test_nobody_waits_for_ever(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_module, "PATIENCE", 0.1)
    with pytest.raises(PeerLost, match="no sign of worker-7"):
        Board(fd, 4, 0.0).wait(0, 1, "worker-7")


def test_a_shard_has_one_owner_at_a_time(fd: int) -> None:
    """Four processes add to one word without atomics; none of the additions is lost."""
    times = 300

    def add() -> None:
        board = Board(fd, 4, 0.0)
        for _ in range(times):
            with board.owning(1):
                seen = board.words[3]
                time.sleep(0)  # let the others in, if they can
                board.words[3] = seen + 1

    pids = [child(add) for _ in range(4)]
    for pid in pids:
        assert os.waitpid(pid, 0)[1] == 0
    assert Board(fd, 4, 0.0).words[3] == 4 * times


def test_shards_are_owned_apart(fd: int) -> None:
    ready, held = os.pipe()

    def hold() -> None:
        with Board(fd, 4, 0.0).owning(0):
            os.write(held, b"x")
            signal.pause()

    pid = child(hold)
    os.read(ready, 1)
    with Board(fd, 4, 0.0).owning(1):
        pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(ready)
    os.close(held)


def test_the_dead_own_nothing(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ready, held = os.pipe()

    def hold() -> None:
        with Board(fd, 4, 0.0).owning(0):
            os.write(held, b"x")
            signal.pause()

    pid = child(hold)
    os.read(ready, 1)
    monkeypatch.setattr(board_module, "PATIENCE", 0.1)
    with pytest.raises(PeerLost, match="shard 0"), Board(fd, 4, 0.0).owning(0):
        pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with Board(fd, 4, 0.0).owning(0):
        pass
    os.close(ready)
    os.close(held)


def test_who_waits_says_for_whom(fd: int, eventually: Any) -> None:
    slate = Slate()
    slate.at(EXCHANGE)
    one, two = Board(fd, 4, 0.0, slate), Board(fd, 4, 0.0)
    waiter = threading.Thread(target=lambda: one.wait(2, 1, "worker-3", peer=worker(3)))
    waiter.start()
    eventually(lambda: slate.read()[0] == WAIT | worker(3), 5)
    two.post(2, 1)
    waiter.join(5)
    assert slate.read()[0] == EXCHANGE


def test_who_waits_for_a_shard_says_who_owns_it(fd: int, eventually: Any) -> None:
    slate, ready, go = Slate(), threading.Event(), os.pipe()

    def own() -> None:
        board = Board(fd, 4, 0.0)
        with board.owning(1):
            board.post(0, 1)
            os.read(go[0], 1)

    holder = child(own)
    mine = Board(fd, 4, 0.0, slate)
    mine.wait(0, 1, "the owner")

    def want() -> None:
        with mine.owning(1):
            ready.set()

    threading.Thread(target=want).start()
    eventually(lambda: slate.read()[0] == WAIT | process(holder), 5)
    os.write(go[1], b"!")
    assert ready.wait(5)
    assert slate.read()[0] == BORN
    os.waitpid(holder, 0)
    for end in go:
        os.close(end)
