"""This host to itself, over TCP: a listening end in a process of its own, as servers are."""

from __future__ import annotations

import subprocess
import sys

from paceline.diagnose.doctor.facts import Link
from paceline.doctor.asked import Asked
from paceline.doctor.link import measure_link
from paceline.doctor.sink import serve
from paceline.launch.nursery import die_with_parent
from paceline.transport import auth
from paceline.transport.sockets import listen

LONGEST = 120.0  # seconds the listening end lives


def measure(asked: Asked, seconds: float) -> Link:
    secret = auth.new_secret()
    other = subprocess.Popen(
        [sys.executable, "-m", "paceline.doctor.loopback"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdin is not None
    assert other.stdout is not None
    try:
        other.stdin.write(f"{secret.hex()}\n")
        other.stdin.flush()
        address = other.stdout.readline().strip()
        if not address:
            raise RuntimeError("the listening end ended before it was there")
        return measure_link(address, secret, seconds)
    finally:
        other.kill()
        other.communicate()


def main() -> None:
    """The listening end: hears its secret, tells its address, serves until it is ended."""
    die_with_parent()
    secret = bytes.fromhex(sys.stdin.readline())
    listener, address = listen("127.0.0.1:0")
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    serve(listener, secret, LONGEST)


if __name__ == "__main__":
    main()
