"""Frames: what workers, servers and standbys say to each other.

A frame is a fixed header, then `length` payload bytes. Nothing is ever unpickled. A server's shard
goes in blocks, a frame each, so that one is applied while the next is on its way.

    worker                       server
      │ INIT   a block of the first parameters    worker-0 only; a second time it changes nothing
      │ PULL  ────────────────────► │             held until there are parameters; says which life
      │ ◄──────────────────── STATE │             every block, and what was applied of this worker's
      │ PUSH   a block of a gradient              named (sender, sequence): applied once,
      │ ◄──────────────────── STATE │             answered always, when the gate lets it,
      │ ◄───────────────────── LATE │             or at once if its round was closed without it
      │ ROWS   some rows of a table's gradient    before the PUSH of the same name they belong to
      │ FETCH  numbers of rows ───► │             on a connection of its own
      │ USED   all from one on ───► │             that are not zero, some at a time
      │ ◄───────────────────── ROWS │             what they are now
      │ FILL   first values of rows │             worker-0 only, before INIT
      │ LEAVE  no more pushes       │             the gate stops counting on this worker
      │ ◄──────────────────── FAULT │             a sentence; the connection is closed

    standby                      server
      │ FOLLOW ───────────────────► │             says which life of the standby it is
      │ ◄───────────────────── BASE │             a block as it stands: note, parameters, state
      │ ◄──────────────────── APPLY │             one update of a block: note, gradient
      │ ACK  ─────────────────────► │             of a block's version: now workers are answered
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from paceline.errors import WireError

MAGIC = b"PL"
PROTOCOL = 8
MAX_PAYLOAD = 1 << 40
MAX_FAULT = 4096
STOP, KEEP, LEAVE = 1, 2, 4  # what a worker was asked: to end, for a checkpoint, to go


class Kind(IntEnum):
    INIT = 1
    PULL = 2
    PUSH = 3
    STATE = 4
    LEAVE = 5
    FAULT = 6
    LATE = 7
    FOLLOW = 8
    BASE = 9
    APPLY = 10
    ACK = 11
    ROWS = 12
    FETCH = 13
    FILL = 14
    USED = 15


class Frame(NamedTuple):
    """A header. `version` is the one a gradient was computed from, or the one now answered.

    `sequence` names a push; in a PULL it is how often the worker was started again, in an answer
    the last push of the worker's that was used. An answer's `begin` and `end` are the worker's
    share of the next round. Where rounds are each worker's own, `begin` is which one a push is of,
    and in an answer the one that the slowest is in. A push's `seconds` are those its gradient took.
    In a FOLLOW `sequence` is how often the standby was started again. An APPLY makes `version` of
    the one before it, at rate `lr`; without `weight` there is no gradient in it. A push says what
    its worker was `asked`, an answer what all of them do after this round. Of what is about rows
    `block` is the table, `begin` how many rows, and `end` how many bytes say which; of FILL and
    USED `begin` is the first row. In the answer to USED `sequence` is where to go on, if not 0.
    """

    kind: int
    sender: int
    sequence: int = 0
    version: int = 0
    weight: float = 0.0
    lr: float = 0.0
    staleness: int = 0
    block: int = 0
    length: int = 0
    begin: int = 0
    end: int = 0
    seconds: float = 0.0
    asked: int = 0


_HEADER = struct.Struct("<2sBBIQQddIIQIIdI")
HEADER_BYTES = _HEADER.size
_KINDS = frozenset(int(kind) for kind in Kind)


def pack(frame: Frame) -> bytes:
    return _HEADER.pack(MAGIC, PROTOCOL, *frame)


def unpack(header: bytes | bytearray | memoryview) -> Frame:
    """The frame of a header, or WireError: nothing after a bad header is trusted."""
    magic, protocol, *fields = _HEADER.unpack(header)
    if magic != MAGIC:
        raise WireError("a peer sent bytes that are not a Paceline frame.")
    if protocol != PROTOCOL:
        raise WireError(f"a peer speaks protocol {protocol}, this is protocol {PROTOCOL}.")
    frame = Frame(*fields)
    if frame.kind not in _KINDS or frame.length > MAX_PAYLOAD:
        raise WireError(f"a peer sent a frame of kind {frame.kind} and length {frame.length}.")
    return frame
