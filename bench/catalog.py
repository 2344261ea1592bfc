"""What the benches measure: models, contenders, and the ratios that are wanted of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
WORKERS = 2
ENOUGH = 3  # repeats from which on findings are kept

INDEPENDENT = "independent"
LOCKSTEP = "In step only"
DDP = "raw DDP"
TENSORFLOW = "TensorFlow PS"
PACKED = "TensorFlow PS packed"
RAY = "Ray actor PS"

# Steps of each worker, for some seconds of work: by whose steps they are, then by model.
PACELINE_STEPS = {"softmax": 10_000, "lenet": 400, "mlp": 40}
GLOO_STEPS = {"softmax": 900, "lenet": 220, "mlp": 26}
TENSORFLOW_STEPS = {"softmax": 512, "lenet": 160, "mlp": 16}
RAY_STEPS = {"softmax": 900, "lenet": 220, "mlp": 20}


@dataclass(frozen=True)
class Model:
    task: str
    batch: int


@dataclass(frozen=True)
class Contender:
    """A strategy of Paceline's; or, without a strategy, something else known by its name."""

    name: str
    steps: Mapping[str, int]
    strategy: str = ""
    transport: str = "auto"
    workers: int = WORKERS


@dataclass(frozen=True)
class Bar:
    """On `model`, `name` is to be at least `least` times as fast as `against`."""

    name: str
    model: str
    against: str
    least: float


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Contenders of one interleaved run on some models; tables show ratios to `against`."""

    name: str
    title: str
    command: str
    about: str
    contenders: tuple[Contender, ...] = ()
    against: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()
    models: tuple[str, ...] = ("softmax", "lenet", "mlp")

    @property
    def results(self) -> Path:
        return RESULTS / f"{self.name}.json"


MODELS = {m.task: m for m in (Model("softmax", 200), Model("lenet", 64), Model("mlp", 64))}

_INDEPENDENT = Contender(INDEPENDENT, PACELINE_STEPS, "independent")
_DDP = Contender(DDP, GLOO_STEPS)
_SYNC_SHM = Contender("ps-sync shm", PACELINE_STEPS, "ps-sync", "shm")
_ASYNC_SHM = Contender("ps-async shm", PACELINE_STEPS, "ps-async", "shm")

EXCHANGE = Bench(
    name="exchange",
    title="Strategies",
    command="make bench",
    about="Every strategy beside no exchange at all and beside raw torch DDP.",
    contenders=(
        _INDEPENDENT,
        _DDP,
        Contender("allreduce", GLOO_STEPS, "allreduce"),
        _SYNC_SHM,
        _ASYNC_SHM,
        Contender("ps-sync tcp", PACELINE_STEPS, "ps-sync", "tcp"),
        Contender("ps-async tcp", PACELINE_STEPS, "ps-async", "tcp"),
    ),
    against=(INDEPENDENT, DDP),
    bars=(
        Bar("allreduce", "softmax", DDP, 0.97),
        Bar("allreduce", "lenet", DDP, 0.97),
        Bar("allreduce", "mlp", DDP, 0.97),
        Bar("ps-sync shm", "softmax", DDP, 4.0),
        Bar("ps-async shm", "softmax", DDP, 4.0),
        Bar("ps-sync shm", "mlp", DDP, 1.3),
        Bar("ps-async shm", "mlp", DDP, 1.3),
    ),
)

PEERS = Bench(
    name="peers",
    title="Peers",
    command="make bench-peers",
    about=(
        "The same models, batches and numbers of threads elsewhere: torch's "
        "DistributedDataParallel on gloo; TensorFlow's ParameterServerStrategy, asynchronous, with "
        "one server, its workers told of one step at a time as its guide does it, or (packed) of "
        "several; a Ray actor as an asynchronous parameter server. And the limit of synchronous "
        "ones: workers that exchange nothing and only wait for each other once a step (in step "
        "only). How each is set up, and what was chosen to suit it, stands at the head of "
        "`bench/raw_ddp.py`, `bench/tensorflow_ps.py`, `bench/ray_ps.py` and `bench/lockstep.py`."
    ),
    contenders=(
        _INDEPENDENT,
        Contender(LOCKSTEP, PACELINE_STEPS),
        _DDP,
        Contender(TENSORFLOW, TENSORFLOW_STEPS),
        Contender(PACKED, TENSORFLOW_STEPS),
        Contender(RAY, RAY_STEPS),
        _SYNC_SHM,
        _ASYNC_SHM,
    ),
    against=(INDEPENDENT, LOCKSTEP, DDP, TENSORFLOW, PACKED, RAY),
    bars=(
        Bar("ps-sync shm", "softmax", DDP, 5.0),
        Bar("ps-sync shm", "lenet", DDP, 1.2),
        Bar("ps-sync shm", "mlp", DDP, 1.4),
        Bar("ps-async shm", "softmax", TENSORFLOW, 20.0),
        Bar("ps-async shm", "lenet", TENSORFLOW, 3.0),
        Bar("ps-async shm", "mlp", TENSORFLOW, 3.0),
        Bar("ps-sync shm", "softmax", INDEPENDENT, 0.85),
        Bar("ps-async shm", "softmax", INDEPENDENT, 0.85),
        Bar("ps-sync shm", "lenet", INDEPENDENT, 0.95),
        Bar("ps-async shm", "lenet", INDEPENDENT, 0.95),
        Bar("ps-sync shm", "mlp", INDEPENDENT, 0.95),
        Bar("ps-async shm", "mlp", INDEPENDENT, 0.97),
    ),
)

SPARSE = Bench(
    name="sparse",
    title="Sparse models",
    command="make bench-sparse",
    about=(
        "Logistic regression with 33,762,578 features on click-like rows of 39 fields, one pass; "
        "what was chosen to suit each peer stands at the head of its file in `bench/clicks`. Ours "
        "is told from the begin of the first step to the end of the last; from text, conversion "
        "to shards is in it too."
    ),
)

ADVICE = Bench(
    name="advice",
    title="Verdicts and advice",
    command="python -m bench.advice",
    about=(
        "Runs that are slow for a reason that is known, since they are made so "
        "(`tools/situations.py`): what `paceline diagnose` finds, the gain it predicts for its "
        "first advice that a program can follow, and the gain that `--try` then measures."
    ),
)

WIRE = Bench(
    name="wire",
    title="The wire",
    command="python -m bench.wire",
    about=(
        "80 MB of gradients pushed and 80 MB of parameters pulled by one worker from one server "
        "over the loopback, each block received, applied and answered; beside iperf3, which only "
        "moves bytes, one way. Bytes of both ways over the time that both took together."
    ),
)

MEMORY = Bench(
    name="memory",
    title="Memory",
    command="python -m bench.memory",
    about=(
        "Resident memory of a worker with 33 million dense parameters (132 MB) beside that of the "
        "same worker with a tiny model, which is what Python and torch take by themselves."
    ),
)

BOUNDED = Bench(
    name="bounded",
    title="Bounded staleness",
    command="python -m bench.bounded",
    about=(
        "LeNet with two workers of which one is slowed three times: `ssp --bound 3` beside "
        "`ps-sync`. How far one worker ever was ahead is checked from the records."
    ),
)

CODECS = Bench(
    name="codecs",
    title="Codecs",
    command="python -m bench.codecs",
    about="LeNet on MNIST for six epochs, two workers over TCP, default settings.",
)

BALANCE = Bench(
    name="balance",
    title="Unequal workers",
    command="python -m bench.balance",
    about=(
        "LeNet with two workers of which one is slowed 1.78 times, as parts of the sum of what "
        "both do alone. *Even* is without `--balance`; *equal* is what two workers reach of which "
        "none is slowed, which is what the exchange and being in step cost; *in hindsight* is the "
        "most that shares could have reached that stay the same, were the exchange for nothing. "
        "*Back* is after how many rounds the next ten were at 90 % of the sum once the other "
        "worker is the slow one, and of what that run had before."
    ),
)

CHECKPOINT = Bench(
    name="checkpoint",
    title="Checkpoints",
    command="python -m bench.checkpoint",
    about=(
        "A model of 20 million parameters with a checkpoint each five seconds: what steps around "
        "one take longer than those beside them in the same run, as a part of the throughput."
    ),
)

GOODPUT = Bench(
    name="goodput",
    title="Kills",
    command="python -m bench.goodput",
    about=(
        "LeNet with two workers, of whom, or of whose servers, one is killed every so many "
        "seconds, beside the same run without kills."
    ),
)

INSTRUMENTATION = Bench(
    name="instrumentation",
    title="What measuring costs",
    command="python -m bench.instrumentation",
    about=(
        "Softmax [200], two workers over shared memory: steps that are measured against steps that "
        "are not, in turns in one run. Throughput, on over off, is 1 / (steps + telling), less "
        "what the supervisor takes."
    ),
)

FINDINGS = (WIRE, MEMORY, BOUNDED, CODECS, BALANCE, CHECKPOINT, GOODPUT, INSTRUMENTATION)
BENCHES = (EXCHANGE, PEERS, SPARSE, ADVICE, *FINDINGS)
