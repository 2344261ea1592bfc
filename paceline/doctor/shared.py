"""A word to another process and one back, over the board that workers of one host use."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from paceline.diagnose.doctor.facts import Shared
from paceline.doctor.asked import Asked
from paceline.launch.nursery import die_with_parent
from paceline.measure.cores import my_cores
from paceline.measure.spread import percentile, spread
from paceline.transport.board import GONE, Board, size_board
from paceline.transport.memory import new_segment

SPIN = 0.001  # seconds, as workers look that have a core to themselves
PIECES = 16
WARM = 200
PING, PONG = 0, 8  # words, in cache lines of their own
WORDS = 16


def measure(asked: Asked, seconds: float) -> Shared:
    cores = my_cores()
    ends = tuple(cores[:2]) if len(cores) > 1 else ()
    fd = new_segment("doctor")
    size_board(fd, WORDS)
    where = str(ends[1]) if ends else ""
    peer = subprocess.Popen(
        [sys.executable, "-m", "paceline.doctor.shared", str(fd), where], pass_fds=[fd]
    )
    try:
        if ends:
            os.sched_setaffinity(0, {ends[0]})
        board = Board(fd, WORDS, SPIN if ends else 0.0)
        for turn in range(1, WARM):
            _turn(board, turn, peer)
        pieces, turn = [], WARM
        for _ in range(PIECES):
            taken: list[float] = []
            until = time.perf_counter() + seconds / PIECES
            while not taken or time.perf_counter() < until:
                taken.append(_turn(board, turn, peer))
                turn += 1
            pieces.append(taken)
        board.post(PING, GONE)
    finally:
        os.sched_setaffinity(0, cores)
        peer.kill()
        peer.wait()
        os.close(fd)
    return Shared(
        latency=spread([statistics.median(piece) for piece in pieces]),
        slowest=percentile([taken for piece in pieces for taken in piece], 0.99),
        cores=ends,
    )


def _turn(board: Board, turn: int, peer: subprocess.Popen[bytes]) -> float:
    began = time.perf_counter()
    board.post(PING, turn)
    answered = board.wait(PONG, turn, "the other end", lambda: peer.poll() is not None)
    if not answered and board.words[PONG] < turn:
        raise RuntimeError("the other end of the shared memory ended")
    return time.perf_counter() - began


def main(fd: int, core: str) -> None:
    """The other end: answers each word until it is told that there are no more."""
    die_with_parent()
    if core:
        os.sched_setaffinity(0, {int(core)})
    board = Board(fd, WORDS, SPIN if core else 0.0)
    turn = 1
    while True:
        board.wait(PING, turn, "the first end")
        if board.words[PING] == GONE:
            return
        board.post(PONG, turn)
        turn += 1


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
