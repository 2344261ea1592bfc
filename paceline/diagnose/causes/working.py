"""Time spent on the work itself, computing, updating, scoring; and what no record explains."""

from __future__ import annotations

from paceline.diagnose.causes.facts import cores_used, idle_cores, time_in, trust
from paceline.diagnose.evidence import COMPUTE, EVALUATION, KEEPING, OTHER, UPDATE, Evidence
from paceline.diagnose.finding import Advice, Fact, Finding
from paceline.diagnose.gains import between, fewer, gone, larger_batch
from paceline.spec.runspec import SEVERAL

NOTHING = "nothing"
NEAR = 0.9  # of the time: beyond it, nothing holds the workers back
FULL = 0.97  # of a memory clock, which does not move by itself under load


def compute(e: Evidence, share: float) -> Finding:
    """What is left when nothing else is in the way."""
    level, why = trust(e)
    idle, used = idle_cores(e), cores_used(e)
    facts = [time_in(e, "time spent in forward and backward", *COMPUTE)]
    if used is not None:
        facts.append(Fact("cores that roles used", used, "cores", "CPU of each role"))
    if idle is not None:
        facts.append(Fact("cores that were idle", idle, "cores", "CPU of roles and host"))
    advice = _more_workers(e, share, idle)
    scale = "more workers will scale" if advice[0].changes else "more cores or hosts will scale"
    if share >= NEAR:
        sentence = f"{NOTHING}: compute-bound at {100 * share:.0f} % of the limit; {scale}"
    else:
        who = "workers compute" if len(e.workers) > 1 else "the worker computes"
        time = "their time" if len(e.workers) > 1 else "its time"
        sentence = f"{who} {100 * share:.0f} % of {time}; {scale}, another exchange would not help"
    return Finding(
        cause="compute",
        share=share,
        sentence=sentence,
        roles=tuple(w.role for w in e.workers),
        facts=tuple(facts),
        advice=advice,
        confidence=level,
        why=why,
        against=_clocks(e),
    )


def _more_workers(e: Evidence, share: float, idle: float | None) -> tuple[Advice, ...]:
    """More workers where there are cores for them. What is not computing grows with their number;
    and cores may share what computing needs, memory or halves of one core, so that what comes on
    top may be half of it."""
    crew, threads = max(1, len(e.workers)), max(1, e.threads or 1)
    several = {"strategy": SEVERAL} if e.spec.strategy == "single" else {}
    free = int((idle or 0.0) + 0.25) // threads
    if e.cores and free >= 1:
        to = min(crew + free, max(crew + 1, e.cores // threads))
        times = to / crew
        even = times / (share + (1 - share) * times)
        return (
            Advice(
                text=f"--workers {to}: {idle:.1f} cores are idle",
                gain=between(e, (1 + even) / 2, times),
                changes={"workers": to, "threads": threads, **several},
            ),
        )
    if e.cores and threads > 1 and crew * threads <= e.cores:
        to = crew * threads
        return (
            Advice(
                text=f"--workers {to} --threads 1: threads of one worker wait for one another at "
                "every layer, workers once a round",
                gain=between(e, 1.0, threads),
                changes={"workers": to, "threads": 1, **several},
            ),
        )
    return (
        Advice(
            text="twice the workers on twice the cores, on a larger host or on another one",
            gain=between(e, 2.0 / (2.0 - share), 2.0),
        ),
    )


def _clocks(e: Evidence) -> tuple[str, ...]:
    """GPUs that do not run as fast as they could."""
    return tuple(
        f"GPU {gpu.index} of {host} ran at {100 * share:.0f} % of its {what}"
        + (f", held back by {', '.join(gpu.slowed)}" if gpu.slowed else "")
        for host, use in e.hosts.items()
        for gpu in use.gpus
        if gpu.uuid in e.gpus
        for what, share, least in (
            ("clock", gpu.sm_share, NEAR),
            ("memory clock", gpu.memory_share, FULL),
        )
        if share is not None and share < least
    )


def update(e: Evidence, share: float) -> Finding:
    """The optimizer's step takes long, where nothing is exchanged."""
    level, why = trust(e)
    advice = []
    if larger := larger_batch(e, share):
        times, gain = larger
        batch = (e.spec.batch or 1) * times
        text = f"--batch {batch}: the same samples in fewer updates"
        advice.append(Advice(text=text, gain=gain, changes={"batch": batch}))
    advice.append(
        Advice(
            text="a simpler --optimizer: sgd keeps no state",
            gain=between(e, 1.0, gone(share / 2)),
        )
    )
    return Finding(
        cause="update",
        share=share,
        sentence=f"applying updates takes {100 * share:.0f} % of the time; "
        "fewer or simpler ones would help, more workers would not",
        roles=tuple(w.role for w in e.workers),
        facts=(time_in(e, "time spent applying updates", UPDATE),),
        advice=tuple(advice),
        confidence=level,
        why=why,
    )


def evaluation(e: Evidence, share: float) -> Finding:
    """Workers score instead of training."""
    level, why = trust(e)
    advice = [
        Advice(
            text="--evaluate end: score once, when all is trained",
            # Whoever has scored less waits for the others at the next exchange.
            gain=between(e, gone(0.9 * share), gone(share + e.share("wait"))),
            changes={"evaluate": "end", "target_accuracy": None},
        )
    ]
    idle = idle_cores(e)
    if idle is not None and idle >= 0.5:
        advice.append(
            Advice(
                text=f"--evaluator: score beside training, on the {idle:.1f} cores that are idle",
                gain=between(e, gone(share / 2), gone(share)),
                changes={"evaluator": True},
            )
        )
    advice.append(
        Advice(
            text="score on fewer samples, or make epochs longer",
            gain=between(e, gone(share / 2), gone(share)),
        )
    )
    return Finding(
        cause="evaluation",
        share=share,
        sentence=f"scoring takes {100 * share:.0f} % of the time between the first step and the "
        "last; scoring less often would help, more workers would not",
        roles=tuple(w.role for w in e.workers if w.share(EVALUATION) >= share / 2),
        facts=(time_in(e, "time spent scoring", EVALUATION),),
        advice=tuple(advice),
        confidence=level,
        why=why,
    )


def other(e: Evidence, share: float) -> Finding:
    """Time between steps: for checkpoints and snapshots, or for what no record explains."""
    level, why = trust(e)
    kept = e.share(*KEEPING)
    facts = [Fact("time outside of steps", 100 * share, "%", f"steps: {OTHER}")]
    facts += [
        Fact(f"time spent on {what}s", 100 * e.share(what), "%", f"spans: {what}")
        for what in KEEPING
        if e.share(what)
    ]
    told, advice = "no record says with what", []
    if 2 * kept > share:
        told, advice = f"{100 * kept:.0f} % with checkpoints and snapshots", rarer(e, kept)
    else:
        level, why = "low", "it is what is left when all that was recorded is counted"
    look = "see with paceline trace what happens between steps"
    advice = [*advice, Advice(text=look, gain=between(e, 1.0, fewer(share, 2.0)))]
    return Finding(
        cause="other",
        share=share,
        sentence=f"{100 * share:.0f} % of the time passes between steps, {told}",
        roles=tuple(w.role for w in e.workers),
        facts=tuple(facts),
        advice=tuple(advice),
        confidence=level,
        why=why,
    )


def rarer(e: Evidence, share: float) -> list[Advice]:
    """Fewer checkpoints, where there are some."""
    every = 4 * e.spec.checkpoint_every
    if not every:
        return []
    return [
        Advice(
            text=f"--checkpoint-every {every:g}: writing them is in the way",
            gain=between(e, 1.0, gone(share)),
            changes={"checkpoint_every": every},
        )
    ]
