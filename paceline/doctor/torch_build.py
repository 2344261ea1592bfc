"""How torch was built, and what it does here unless told."""

from __future__ import annotations

from paceline.diagnose.doctor.facts import Torch
from paceline.doctor.asked import Asked


def measure(asked: Asked, seconds: float) -> Torch:
    import torch

    return Torch(
        mkl=torch.backends.mkl.is_available(),  # type: ignore[no-untyped-call]
        onednn=torch.backends.mkldnn.is_available(),  # type: ignore[no-untyped-call]
        openmp=torch.backends.openmp.is_available(),  # type: ignore[no-untyped-call]
        cuda=torch.version.cuda,
        instructions=torch.backends.cpu.get_cpu_capability(),
        threads=torch.get_num_threads(),
    )
