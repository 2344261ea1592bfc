"""The GPUs there are, as their driver describes them. None is no fault."""

from __future__ import annotations

from pathlib import Path

from paceline.diagnose.doctor.facts import Gpus
from paceline.doctor.asked import Asked
from paceline.doctor.nvml import NoNvml, gpus, opened

SIGNS = ("proc/driver/nvidia/gpus", "dev/nvidia0", "dev/dxg")  # that there is one all the same


def measure(asked: Asked, seconds: float) -> Gpus:
    try:
        with opened() as nvml:
            return gpus(nvml)
    except NoNvml:
        if signs():
            raise
        return Gpus(driver=None, devices=())


def signs(root: Path = Path("/")) -> bool:
    """Whether the kernel knows a GPU, whatever NVML says."""
    return any((root / sign).exists() for sign in SIGNS)
