"""The nursery: a warm parent. It has imported torch and started no thread, so a role forked from
it takes its first step tens of milliseconds later instead of seconds.

    supervisor ◄── socket ──► nursery ──fork──► roles

The socket is the nursery's lease on life: when its other end closes, because the supervisor ended
or was killed, the nursery kills every role and ends. A role in turn dies with the nursery
(PR_SET_PDEATHSIG). So nothing outlives the supervisor, however it went.

Messages are JSON datagrams; file descriptors ride along with a fork request.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import traceback
from functools import cache
from typing import Any, NoReturn

from paceline import env

PRELOAD = (
    "torch",
    "numpy",
    "paceline.launch.role",
    "paceline.worker.role",
    "paceline.launch.server_role",
    "paceline.exchange.served",
    "paceline.exchange.local",
)
# Of roles that train sparse tables, on top of that: known once there is such a run.
LOOPS = (
    "paceline.exchange.with_tables",
    "paceline.exchange.rows_served",
    "paceline.exchange.rows_shared",
    "paceline.server.rowstore",
)
MAX_MESSAGE = 1 << 18
MAX_FDS = 200  # a server that takes over from many is handed the memory of all of them
PR_SET_PDEATHSIG = 1


class Nursery:
    """The supervisor's handle on a nursery process."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        # A session of its own: Ctrl-C in the terminal reaches the supervisor alone, which decides.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "paceline.launch.nursery", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            env=env.for_roles(),
        )
        theirs.close()
        self._sock = ours

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def fork(self, assignment: dict[str, Any], fds: dict[str, int]) -> None:
        """Ask for a role. Its process id comes back as a `born` message."""
        body = json.dumps({**assignment, "fds": list(fds)}).encode()
        socket.send_fds(self._sock, [body], list(fds.values()))

    def messages(self) -> list[dict[str, Any]] | None:
        """What has been reported: births and exits. None once the nursery is gone."""
        found: list[dict[str, Any]] = []
        while True:
            try:
                body = self._sock.recv(MAX_MESSAGE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return found
            except OSError:
                return found or None
            if not body:
                return found or None
            found.append(json.loads(body))

    def close(self) -> None:
        """End the nursery and with it every role."""
        self._sock.close()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main(fd: int) -> None:
    """The nursery process: preload, then fork on request until the supervisor is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    control = socket.socket(fileno=fd)
    control.setblocking(False)
    for name in PRELOAD:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # keep collections in the children from copying the parent's pages

    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    selector.register(wake_read, selectors.EVENT_READ)
    children: dict[int, str] = {}  # process id → the run it belongs to
    supervised = True
    while supervised:
        selector.select(1.0)
        with contextlib.suppress(BlockingIOError):
            os.read(wake_read, 4096)
        _reap(control, children)
        supervised = _serve(control, children, (wake_read, wake_write, selector))
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in children:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _serve(control: socket.socket, children: dict[int, str], own: tuple[Any, ...]) -> bool:
    """Answer every fork request that is here; False once the supervisor is gone."""
    while True:
        try:
            body, fds, _, _ = socket.recv_fds(control, MAX_MESSAGE, MAX_FDS)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not body:
            return False
        assignment = json.loads(body)
        if assignment["loops"]:
            _warm_loops()
        pid = os.fork()
        if pid == 0:
            _become(control, assignment, dict(zip(assignment["fds"], fds, strict=True)), own)
        for fd in fds:
            os.close(fd)
        children[pid] = assignment["folder"]
        _say(control, kind="born", run=children[pid], role=assignment["role"], pid=pid)


@cache
def _warm_loops() -> None:
    """Once, for all roles to come."""
    from paceline.kernels.jit import warm

    for name in LOOPS:
        importlib.import_module(name)
    warm()
    gc.freeze()


def _reap(control: socket.socket, children: dict[int, str]) -> None:
    while children:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        run = children.pop(pid, "")
        _say(control, kind="exit", run=run, pid=pid, code=os.waitstatus_to_exitcode(status))


def _say(control: socket.socket, **message: Any) -> None:
    with contextlib.suppress(OSError):  # a supervisor that is gone is noticed by reading
        control.setblocking(True)
        control.send(json.dumps(message).encode())
        control.setblocking(False)


def _become(
    control: socket.socket, assignment: dict[str, Any], fds: dict[str, int], own: tuple[Any, ...]
) -> NoReturn:
    """In the child: shed what is the nursery's and be the role."""
    code = 1
    try:
        die_with_parent()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        wake_read, wake_write, selector = own
        selector.close()
        os.close(wake_read)
        os.close(wake_write)
        control.close()
        log = fds.pop("log")
        os.dup2(fds.pop("stdout", log), 1)
        os.dup2(log, 2)
        os.close(log)
        sys.stdout, sys.stderr = (os.fdopen(fd, "w", 1, closefd=False) for fd in (1, 2))
        from paceline.launch.role import play

        code = play(assignment, fds)
    except BaseException:  # noqa: BLE001 - the last line before the process ends
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def die_with_parent() -> None:
    """Ask Linux to kill this process when its parent dies."""
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the request was in place
        os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
