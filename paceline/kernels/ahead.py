"""Memory brought near before it is used, for loops that look at rows in no order.

A processor waits for memory, and can wait for a dozen places at once if it knows them in time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from paceline.kernels.jit import inlined

READ, WRITE = 0, 1  # of LLVM's prefetch
NEAREST, DATA = 3, 1
LINE = 64  # bytes that come at a time


def _prefetch(purpose: int) -> Any:
    """An intrinsic that takes any address, also one where nothing is."""

    def prefetch(typing: Any, address: Any) -> Any:

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
            shape = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
            function = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
            how = [flag(purpose), flag(NEAREST), flag(DATA)]
            builder.call(function, [builder.inttoptr(arguments[0], byte), *how])
            return context.get_dummy_value()

        return types.void(types.intp), code

    return intrinsic(prefetch)


bring_to_read: Any = _prefetch(READ)
bring_to_change: Any = _prefetch(WRITE)


@inlined
def bring(table, row):  # type: ignore[no-untyped-def]
    """Have the beginning of a row near, of any row, to change it."""
    bring_to_change(table.ctypes.data + np.int64(row) * table.strides[0])
