"""Rows of a table brought near before they are used, for loops that look at them in no order.

A processor waits for memory, and can wait for a dozen places at once if it knows them in time.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

FOR_WRITING, NEAREST, DATA = 1, 3, 1  # of LLVM's prefetch


def _bring(typing: Any, table: Any, row: Any) -> Any:

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = builder.extract_value(array.strides, 0)
        address = builder.ptrtoint(array.data, stride.type)
        address = builder.add(address, builder.mul(arguments[1], stride))
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
        how = [flag(FOR_WRITING), flag(NEAREST), flag(DATA)]
        builder.call(prefetch, [builder.inttoptr(address, byte), *how])
        return context.get_dummy_value()

    return types.void(table, types.intp), code


bring: Any = intrinsic(_bring)  # bring(table, row) has the beginning of a row near, of any row
