"""Arrays that lie somewhere in memory, told to compiled loops by their addresses.

A loop over many arrays takes one array of addresses; whoever gives it holds the arrays meanwhile.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic
from numba.np.numpy_support import carray

from paceline.kernels.jit import inlined


def _pointer(typing: Any, address: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.voidptr(types.intp), code


_at: Any = intrinsic(_pointer)


@inlined
def array_at(address, length, dtype):  # type: ignore[no-untyped-def]
    """So many numbers of a type, from an address on."""
    return carray(_at(address), length, dtype)
