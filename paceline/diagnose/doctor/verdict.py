"""What a machine is good for, in a sentence or two."""

from __future__ import annotations

from paceline.diagnose.doctor.facts import Facts


def verdict(facts: Facts) -> str:
    """How many workers it has room for, with how many threads, and what an exchange costs."""
    return " ".join(filter(None, (_crew(facts), _exchange(facts))))


def _crew(facts: Facts) -> str:
    cores, threads = facts.cores, facts.threads
    if facts.gpus and facts.gpus.devices:
        count = len(facts.gpus.devices)
        return f"Good for {_many(count, 'worker')} on {_many(count, 'GPU')}."
    if cores is None:
        return ""
    usable = max(1, int(cores.usable))
    if threads is None:
        return f"Good for up to {_many(usable, 'worker')} with one thread each."
    one = threads.counts[0].rate.value
    return (
        f"Good for up to {_many(usable, 'worker')} of {threads.task} with --threads 1: one does "
        f"{one:,.0f} samples/s."
    )


def _exchange(facts: Facts) -> str:
    """What a strategy with rounds pays for each at least."""
    ways = []
    if facts.shared is not None:
        ways.append(f"{_short(facts.shared.latency.value)} over shared memory")
    if facts.loopback is not None:
        ways.append(f"{_short(facts.loopback.latency.value)} over TCP on this host")
    if facts.peer is not None:
        ways.append(f"{_short(facts.peer.latency.value)} to {facts.peer.address}")
    if not ways:
        return ""
    told = ways[0] if len(ways) == 1 else f"{', '.join(ways[:-1])} and {ways[-1]}"
    return f"A word there and back takes {told}."


def _short(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} µs" if seconds < 1e-3 else f"{1e3 * seconds:.1f} ms"


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
