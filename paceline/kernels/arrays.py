"""What rows of sparse tables are to numpy and to torch."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Floats: TypeAlias = npt.NDArray[np.float32]
Ids: TypeAlias = npt.NDArray[np.int64]


def sparse_of(rows: Ids, values: Floats, shape: torch.Size) -> Tensor:
    """A sparse tensor as autograd makes them; each row is there once, in any order."""
    return torch.sparse_coo_tensor(
        torch.from_numpy(rows)[None],
        torch.from_numpy(values),
        shape,
        check_invariants=False,
        is_coalesced=True,
    )
