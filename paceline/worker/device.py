"""Which device a worker trains on."""

from __future__ import annotations

import torch

from paceline.errors import RequestError


def pick_device(asked: str, index: int) -> torch.device:
    """`auto` takes a GPU where there is one, workers spread over them."""
    if asked == "cpu" or (asked == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise RequestError("--device cuda: this machine has no CUDA device; use --device cpu.")
    device = torch.device("cuda", index % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def gpu_of(device: torch.device) -> str:
    """What tells this GPU from all others, as NVML says it; nothing on a CPU.

    Its number would not do: what a process calls its first GPU may be the host's third.
    """
    if device.type != "cuda":
        return ""
    told = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return "" if told is None else f"GPU-{told}"
