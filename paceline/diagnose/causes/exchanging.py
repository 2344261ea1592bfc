"""What exchanges cost: networks, servers, codecs, and rounds that are worth too few samples."""

from __future__ import annotations

from paceline.diagnose.causes.crowding import one_host, onto_shared_memory
from paceline.diagnose.causes.facts import idle_cores, listed, time_in, trust
from paceline.diagnose.evidence import COMPUTE, ENCODE, INPUT, MOTION, UPDATE, Evidence, ServerPart
from paceline.diagnose.finding import Advice, Fact, Finding, lower
from paceline.diagnose.gains import between, fewer, gone, larger_batch
from paceline.diagnose.split import BYTE, HALF, a_step, busiest, server_work, usual_exchange

INT8 = 3.9  # times smaller than floats
RARELY = 10  # steps between averagings


def server_network(e: Evidence, share: float) -> Finding:
    """Everybody's exchange takes long, and the server has little to do meanwhile."""
    server = busiest(e)
    names = (server.role,) if server else ()
    moving = [_mean(p.use.sent) + _mean(p.use.received) for p in e.servers if p.use]
    told = f", {sum(moving) / 1e6:.1f} MB/s" if moving else ""
    return _network(
        e,
        share,
        "server-network",
        names,
        f"what goes to and from {listed(names) or 'the servers'}{told}, takes "
        f"{100 * share:.0f} % of the time, and nobody computes meanwhile",
    )


def worker_network(e: Evidence, share: float) -> Finding:
    """One worker's exchange takes longer than the others', or all-reduce has no servers."""
    late = e.straggler.role if e.straggler and e.own < HALF else None
    names = (late,) if late else tuple(w.role for w in e.workers)
    told = (
        f"all wait {100 * share:.0f} % of the time for what goes to and from {late}, which comes "
        "late though it computes as fast as the others"
        if late
        else f"what workers send one another takes {100 * share:.0f} % of the time, and nobody "
        "computes meanwhile"
    )
    return _network(e, share, "worker-network", names, told)


def _network(
    e: Evidence, share: float, cause: str, names: tuple[str, ...], sentence: str
) -> Finding:
    level, why = trust(e)
    messages, moved = a_step(e)
    server = busiest(e)
    facts = [
        time_in(e, "time spent exchanging", *MOTION),
        Fact("usual for so many bytes", 100 * usual_exchange(e), "%", "messages and bytes by peer"),
        Fact("bytes a step and worker", moved / 1e6, "MB", "traffic by peer"),
        Fact("messages a step and worker", messages, "", "traffic by peer"),
    ]
    facts += _links(e, names)
    against = []
    if server is not None and server.busy is not None:
        told = "spans" if server.shares else "CPU"
        facts.append(Fact(f"{server.role} busy", 100 * server.busy, "%", f"its {told}"))
        if server.busy > 0.5:
            level = lower(level, "medium")
            against.append(
                f"{server.role} is busy {100 * server.busy:.0f} % of the time, which a slow "
                "network alone would not make it"
            )
    if e.spec.kind.served and len(e.workers) == 1:
        level = lower(level, "medium")
        against.append("with one worker it cannot be told whose end of the connection is slow")
    advice = []
    if e.spec.kind.transports and one_host(e):
        advice.append(onto_shared_memory(e, gone(share), gone(e.share(*MOTION))))
    advice += _larger(e, e.share(*MOTION, UPDATE))
    if e.spec.codec == "none" and "codec" in e.spec.kind.options:
        saved = _pushed(e) * share * (1 - 1 / INT8)
        advice.append(
            Advice(
                text="--codec int8: gradients a quarter as large",
                gain=between(e, gone(saved / 2), gone(saved)),
                changes={"codec": "int8"},
            )
        )
    where = listed(names)
    advice.append(Advice(text=f"a faster link for {where}", gain=between(e, 1.0, gone(share))))
    return Finding(
        cause=cause,
        share=share,
        sentence=f"{sentence}; fewer bytes or a faster link would help",
        roles=names,
        facts=tuple(facts),
        advice=tuple(advice[:3]),
        confidence=level,
        why=why,
        against=tuple(against),
    )


def _links(e: Evidence, names: tuple[str, ...]) -> list[Fact]:
    """What named roles move, beside what the NICs of their hosts can."""
    parts = [part for part in e.parts if part.role in names]
    facts = []
    for part in parts:
        ways = (("sends", part.use.sent), ("receives", part.use.received)) if part.use else ()
        for way, rate in ways:
            if rate:
                facts.append(Fact(f"{part.role} {way}", rate.mean / 1e6, "MB/s", "its counters"))
    for name, host in e.hosts.items():
        for nic, use in host.nics.items():
            if use.speed and use.sent and use.received and name in {p.host for p in parts}:
                full = max(use.sent.mean, use.received.mean) * 8e-6 / use.speed
                facts.append(Fact(f"{nic} in use", 100 * full, "%", f"{name}: {nic}"))
    return facts


def _pushed(e: Evidence) -> float:
    """What part of the bytes are gradients."""
    uses = [worker.use for worker in e.workers if worker.use]
    sent, received = sum(_mean(u.sent) for u in uses), sum(_mean(u.received) for u in uses)
    return sent / (sent + received) if sent + received > 0 else 0.5


def _mean(rate: tuple[float, float] | None) -> float:
    return rate[0] if rate is not None else 0.0


def _larger(e: Evidence, fixed: float) -> list[Advice]:
    larger = larger_batch(e, fixed)
    if larger is None:
        return []
    times, gain = larger
    batch = (e.spec.batch or 1) * times
    text = f"--batch {batch}: as many samples in {times} times fewer rounds"
    return [Advice(text=text, gain=gain, changes={"batch": batch})]


def server_cpu(e: Evidence, share: float) -> Finding:
    """A server has its hands full."""
    level, why = trust(e)
    server = busiest(e)
    name = server.role if server else "the server"
    facts, against = [time_in(e, "time spent exchanging", *MOTION)], []
    if server is not None:
        facts += _of_server(server)
        used = server.use.cpu.mean if server.use and server.use.cpu else None
        if used is not None and used < server_work(server) / 2:
            level = lower(level, "medium")
            against.append(
                f"{name} is at work {100 * server_work(server):.0f} % of the time and used only "
                f"{used:.2f} cores: something keeps it from its core"
            )
    there, idle = max(1, len(e.servers)), idle_cores(e)
    advice = []
    if idle is not None and idle >= 0.5:
        halved = fewer(share, (there + 1) / there)
        advice.append(
            Advice(
                text=f"--servers {there + 1}: each applies a part, and {idle:.1f} cores are idle",
                gain=between(e, (1 + halved) / 2, halved),
                changes={"servers": there + 1},
            )
        )
    if one_host(e):
        advice.append(onto_shared_memory(e, 1.0, gone(share)))
    advice += _larger(e, e.share(*MOTION, UPDATE))
    rule = e.spec.optimizer or "its rule"
    text = f"a simpler --optimizer than {rule}: sgd keeps no state"
    advice.append(Advice(text=text, gain=between(e, 1.0, gone(share / 2))))
    return Finding(
        cause="server-cpu",
        share=share,
        sentence=f"workers wait {100 * share:.0f} % of the time for {name}, which is busy; "
        "more servers or fewer updates would help, more workers would not",
        roles=(name,) if server else (),
        facts=tuple(facts),
        advice=tuple(advice[:3]),
        confidence=level,
        why=why,
        against=tuple(against),
    )


def _of_server(server: ServerPart) -> list[Fact]:
    spans = ("apply", "decode", "receive", "send", "gate", "idle")
    facts = [
        Fact(f"{server.role}: {span}", 100 * server.shares[span], "%", "its spans")
        for span in spans
        if server.shares.get(span)
    ]
    if server.use and server.use.cpu:
        facts.append(Fact(f"CPU of {server.role}", server.use.cpu.mean, "cores", "its counters"))
    return facts


def small_batch(e: Evidence, share: float) -> Finding:
    """An exchange costs what it costs, and there are too few samples behind it."""
    level, why = trust(e)
    each = e.seconds / e.steps if e.steps else 0.0
    round_, batch = e.share(*MOTION, UPDATE) * each, e.share(*COMPUTE, *INPUT) * each
    advice = _larger(e, share)
    if e.wired and e.spec.kind.transports and one_host(e):
        advice.append(onto_shared_memory(e, 1.0, gone(share)))
    if e.spec.kind.pooled and not e.spec.backup:
        changes = {"strategy": "local-sgd", "sync_every": RARELY, "servers": None, "codec": "none"}
        advice.append(
            Advice(
                text=f"--strategy local-sgd: meet every {RARELY} steps, which is another way to "
                "learn",
                gain=between(e, fewer(share / 2, RARELY), fewer(share, RARELY)),
                changes=changes | {"balance": False, "replicas": 0, "tls": False, "port": 0},
            )
        )
    return Finding(
        cause="small-batch",
        share=share,
        sentence=f"a round costs {1e3 * round_:.2g} ms whatever the batch is, and a batch of "
        f"{e.spec.step_samples} takes {1e3 * batch:.2g} ms; a larger --batch would help, more "
        "workers would not",
        roles=tuple(w.role for w in e.workers),
        facts=(
            time_in(e, "time spent exchanging", *MOTION),
            time_in(e, "time spent applying updates", UPDATE),
            time_in(e, "time spent in forward and backward", *COMPUTE),
            Fact("samples a step and worker", e.spec.step_samples, "", "spec: batch"),
        ),
        advice=tuple(advice[:3]),
        confidence=level,
        why=why,
    )


def codec(e: Evidence, share: float) -> Finding:
    """Making gradients smaller costs more than it saves.

    Without it gradients are `ratio` times as large, and take at least what so many bytes usually
    take, at most as many times longer than the exchange took.
    """
    level, why = trust(e)
    server = busiest(e)
    name, ratio = e.spec.codec, e.ratio or 1.0
    facts = [time_in(e, "time spent encoding", ENCODE)]
    if server is not None and server.shares.get("decode"):
        facts.append(Fact(f"{server.role}: decode", 100 * server.share("decode"), "%", "its spans"))
    if e.ratio:
        facts.append(Fact("gradients are smaller", e.ratio, "x", "what workers report of coding"))
    _, moved = a_step(e)
    pushed = _pushed(e)
    more = (ratio - 1) * pushed * moved * BYTE * len(e.workers) * e.steps
    least = more / e.seconds if e.seconds else 0.0
    most = max(least, (ratio - 1) * pushed * e.share(*MOTION))
    plain = between(e, gone(share - most), gone(share - least))
    advice = []
    if plain.high > 1.1:
        text = "--codec none: send gradients as they are"
        advice.append(Advice(text=text, gain=plain, changes={"codec": "none"}))
    if name.partition(":")[0] not in ("fp16", "bf16"):
        advice.append(
            Advice(
                text="--codec fp16: half as large, for next to no work",
                gain=between(e, 1.0, gone(share)),
                changes={"codec": "fp16"},
            )
        )
    return Finding(
        cause="codec",
        share=share,
        sentence=f"making gradients smaller with '{name}' takes {100 * share:.0f} % of the time; "
        "a cheaper codec or none would help",
        roles=tuple(w.role for w in e.workers),
        facts=tuple(facts),
        advice=tuple(advice),
        confidence=level,
        why=why,
    )
