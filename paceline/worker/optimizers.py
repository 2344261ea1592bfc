"""From a torch optimizer to the rule a server applies in its place."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import Optimizer

from paceline.errors import TaskError

REFUSED = ("amsgrad", "maximize", "dampening", "lr_decay", "initial_accumulator_value")


def rule_of(optimizer: Optimizer) -> tuple[str, dict[str, float]]:
    """The rule's name and hyper-parameters; TaskError where a server would do something else."""
    kind = type(optimizer).__name__
    group = optimizer.param_groups[0]
    for other in optimizer.param_groups[1:]:
        if _plain(other) != _plain(group):
            raise TaskError(
                "servers apply one rule to all parameters, and this optimizer's groups differ; "
                "use --strategy allreduce, which keeps your optimizer."
            )
    odd = [name for name in REFUSED if group.get(name)]
    hyper = {"weight_decay": float(group.get("weight_decay", 0.0))}
    if odd or type(optimizer) not in (
        torch.optim.SGD,
        torch.optim.Adam,
        torch.optim.AdamW,
        torch.optim.Adagrad,
    ):
        what = f"{kind} with {', '.join(odd)}" if odd else kind
        raise TaskError(
            f"servers have no rule like {what}; they know SGD, Adam, AdamW and Adagrad. "
            "Use --strategy allreduce, which keeps your optimizer."
        )
    match kind:
        case "SGD":
            hyper["momentum"] = float(group["momentum"])
            if not hyper["momentum"]:
                return "sgd", hyper
            return ("nesterov" if group["nesterov"] else "momentum"), hyper
        case "Adagrad":
            return "adagrad", hyper | {"eps": float(group["eps"])}
        case _:
            beta1, beta2 = group["betas"]
            rule = "adamw" if group.get("decoupled_weight_decay") else kind.lower()
            return rule, hyper | {"beta1": beta1, "beta2": beta2, "eps": group["eps"]}


def _plain(group: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name != "params"}
