"""Where the random generators of a worker stand: Python's, numpy's, torch's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

from paceline.store.parts import Arrays


def random_states(device: torch.device) -> tuple[dict[str, Any], Arrays]:
    """All of them, as values that JSON can say and arrays."""
    version, words, gauss = random.getstate()
    name, key, at, has_gauss, normal = np.random.get_state()
    values = {
        "python": [version, gauss],
        "numpy": [str(name), int(at), int(has_gauss), float(normal)],
    }
    arrays: Arrays = {
        "random.python": np.array(words, dtype=np.uint32),
        "random.numpy": np.array(key, dtype=np.uint32),
        "random.torch": torch.get_rng_state().numpy(),
    }
    if device.type == "cuda":
        arrays["random.cuda"] = torch.cuda.get_rng_state(device).numpy()
    return values, arrays


def set_random_states(device: torch.device, values: dict[str, Any], arrays: Arrays) -> None:
    """From now on the same numbers come as came after `random_states`."""
    version, gauss = values["python"]
    random.setstate((version, tuple(arrays["random.python"].tolist()), gauss))
    name, at, has_gauss, normal = values["numpy"]
    state = (name, arrays["random.numpy"], at, has_gauss, normal)
    np.random.set_state(state)
    torch.set_rng_state(torch.from_numpy(arrays["random.torch"]))
    if device.type == "cuda" and "random.cuda" in arrays:
        torch.cuda.set_rng_state(torch.from_numpy(arrays["random.cuda"]), device)
