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
