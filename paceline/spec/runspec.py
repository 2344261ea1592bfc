"""RunSpec: everything that decides what a run does, and nothing else."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer

from paceline.errors import SpecError, unknown
from paceline.exchange.catalog import STRATEGIES, Strategy
from paceline.spec.check import KEPT, cross_faults

# Fields a task fills when the spec leaves them open.
OPEN = ("batch", "epochs", "lr", "optimizer")
SEVERAL = "ps-sync"  # the strategy of several workers where none is named: exact, and the fastest


class RunSpec(BaseModel):
    """One run. Frozen and keyword-only; a faulty one raises SpecError with every fault."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    task: str = Field(
        "softmax", min_length=1, description="built-in name, module:Class or file.py:Class"
    )
    data: str | None = Field(None, description="data set; the task's own where not given")
    data_dir: str | None = Field(None, description="folder with the data set's files")
    features: int | None = Field(
        None, ge=1, le=2**31, description="sparse-logreg: how many features there may be"
    )
    strategy: str = Field(
        "single", description="how gradients become parameters; ps-sync where workers are several"
    )
    workers: int = Field(1, ge=1, le=4096, description="how many workers train")
    servers: int | None = Field(None, ge=1, le=256, description="how many servers hold parameters")
    transport: Literal["auto", "shm", "tcp"] = Field("auto", description="how bytes move")
    codec: str = Field(
        "none", min_length=1, description="how gradients are made smaller before they are sent"
    )
    bound: int | None = Field(None, ge=1, description="ssp: rounds ahead of the slowest, at most")
    backup: int = Field(0, ge=0, description="ps-sync: how many workers a round goes without")
    balance: bool = Field(
        False, description="share a round's batch by the speed of workers, as it is just now"
    )
    sync_every: int | None = Field(None, ge=1, description="local-sgd: steps between averagings")
    outer_lr: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="local-sgd: rate of the outer step"
    )
    outer_momentum: float | None = Field(
        None, ge=0, lt=1, description="local-sgd: Nesterov momentum of the outer step"
    )
    damp_stale: bool = Field(False, description="divide a gradient's rate by its staleness")
    dense: bool = Field(False, description="exchange sparse tables whole, not the rows in use")
    batch: int | None = Field(None, ge=1, description="samples per step and worker")
    accumulate: int = Field(1, ge=1, description="batches a worker adds up for one step")
    epochs: int | None = Field(None, ge=1, description="passes over the data")
    steps: int | None = Field(None, ge=1, description="steps per worker, instead of epochs")
    lr: float | None = Field(None, gt=0, allow_inf_nan=False, description="learning rate")
    scale_lr: Literal["auto", "linear", "sqrt", "none"] = Field(
        "auto", description="how the rate grows with the global batch"
    )
    warmup: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="epochs over which the rate rises"
    )
    decay: Literal["auto", "none", "linear", "cosine"] = Field(
        "auto", description="how the rate falls afterwards"
    )
    optimizer: str | None = Field(None, description="update rule")
    momentum: float = Field(0.9, ge=0, lt=1, description="for momentum, nesterov and lars")
    weight_decay: float = Field(0.0, ge=0, allow_inf_nan=False, description="L2 penalty")
    l1: float = Field(0.0, ge=0, allow_inf_nan=False, description="for ftrl: L1 penalty")
    seed: int = Field(
        0, ge=0, lt=2**32, description="decides initial parameters and order of samples"
    )
    device: str = Field("auto", pattern=r"^(auto|cpu|cuda)$", description="auto, cpu or cuda")
    threads: int | None = Field(None, ge=1, le=1024, description="torch threads per worker")
    evaluate: Literal["epoch", "end", "never"] = Field("epoch", description="when to score")
    evaluator: bool = Field(False, description="score beside training, in a role of its own")
    target_accuracy: float | None = Field(None, gt=0, le=1, description="stop once reached")
    max_restarts: int = Field(
        3, ge=0, description="how often a role that died is started again; 0: the run ends with it"
    )
    lease: float = Field(
        3.0,
        ge=0,
        allow_inf_nan=False,
        description="seconds a frozen role is waited for; 0: as long as it takes",
    )
    stall_after: float = Field(
        5.0,
        ge=0,
        allow_inf_nan=False,
        description="seconds without progress after which a role is named, with what it waits "
        "for and its stack, six times as many if it computes; 0: never",
    )
    # Not strict: TOML and JSON have lists where Python has tuples.
    inject: tuple[str, ...] = Field(
        (),
        strict=False,
        description="faults done on purpose, such as kill:worker-1@step=50, stop:worker-0@3s+5s, "
        "slow:worker-0x1.5, limit:server-0=100mbit, cut:worker-1-server-0@3s+2s, disk-full@8s; "
        "may be given again",
    )
    checkpoint_every: float = Field(
        60.0, ge=0, allow_inf_nan=False, description="seconds between checkpoints; 0: none"
    )
    keep_checkpoints: int = Field(KEPT, ge=1, description="how many checkpoints are kept")
    host: str = Field("127.0.0.1", min_length=1, description="address servers listen on")
    port: int = Field(0, ge=0, le=65535, description="first server's port; 0 takes free ones")
    replicas: int = Field(
        0, ge=0, le=1, description="standbys a server has over TCP, which hold all it has answered"
    )
    tensorboard: str | None = Field(
        None, min_length=1, description="folder for TensorBoard: scalars, graph, profiles"
    )
    profile_steps: str | None = Field(
        None, description="steps of each worker that torch.profiler looks at, such as 10:20"
    )
    tls: bool = Field(False, description="encrypt what workers and servers send")

    def __init__(self, **values: Any) -> None:
        if "strategy" not in values and values.get("workers", 1) not in (None, 1):
            values["strategy"] = SEVERAL
        try:
            super().__init__(**values)
        except ValidationError as wrong:
            bad = {str(e["loc"][0]) if e["loc"] else "" for e in wrong.errors()}
            sound = {
                k: v for k, v in values.items() if k not in bad and k in type(self).model_fields
            }
            rest = type(self).model_construct(**sound)
            raise SpecError(_told(wrong) + cross_faults(rest, skip=bad)) from None
        faults = cross_faults(self)
        if faults:
            raise SpecError(faults)

    @field_serializer("inject")
    def _as_in_json(self, value: tuple[str, ...]) -> list[str]:
        """A list, so that a spec dumped equals one read from a run's folder."""
        return list(value)

    @property
    def kind(self) -> Strategy:
        return STRATEGIES[self.strategy]

    @property
    def step_samples(self) -> int:
        """Samples of one step of one worker, once the batch is known."""
        return (self.batch or 1) * self.accumulate

    @property
    def on_loopback(self) -> bool:
        """Whether nobody outside of this machine gets to `host`."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def with_(self, **changes: Any) -> RunSpec:
        """The same spec with some fields changed, checked again."""
        return RunSpec(**{**self.model_dump(), **changes})

    def absolute(self) -> RunSpec:
        """The same spec with paths that hold from any directory."""
        changes: dict[str, Any] = {}
        for name in ("data_dir", "tensorboard"):
            if path := getattr(self, name):
                changes[name] = str(Path(path).expanduser().resolve())
        path, colon, name = self.task.rpartition(":")
        if colon and path.endswith(".py"):
            changes["task"] = f"{Path(path).expanduser().resolve()}:{name}"
        return self.with_(**changes) if changes else self


def flag(field: str) -> str:
    return "--" + field.replace("_", "-")


def _told(wrong: ValidationError) -> list[str]:
    """pydantic's faults in our words: the flag, the value, what it should be."""
    faults = []
    for e in wrong.errors():
        name = str(e["loc"][0]) if e["loc"] else "spec"
        if e["type"] == "extra_forbidden":
            faults.append(unknown("spec field", name, RunSpec.model_fields))
        else:
            value = e["input"]
            faults.append(
                f"{flag(name)} {value!r}: {_should(e['type'], e.get('ctx') or {}, e['msg'])}."
            )
    return faults


def _should(kind: str, ctx: dict[str, Any], said: str) -> str:  # noqa: PLR0911, PLR0912 - a table
    match kind:
        case "greater_than_equal":
            return f"must be at least {ctx['ge']}"
        case "greater_than":
            return f"must be more than {ctx['gt']}"
        case "less_than_equal":
            return f"must be at most {ctx['le']}"
        case "less_than":
            return f"must be less than {ctx['lt']}"
        case "literal_error":
            return f"must be one of {str(ctx['expected']).replace(chr(39), '')}"
        case "string_pattern_mismatch":
            return "must be one of " + str(ctx["pattern"]).strip("^()$").replace("|", ", ")
        case "string_too_short":
            return "must not be empty"
        case "int_type" | "int_parsing":
            return "must be a whole number"
        case "float_type" | "float_parsing" | "finite_number":
            return "must be a finite number"
        case "bool_type":
            return "must be true or false"
        case "string_type":
            return "must be a string"
        case "tuple_type":
            return "must be a list of strings"
        case _:
            return said[0].lower() + said[1:]
