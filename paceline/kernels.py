"""Loops that are compiled by LLVM where a run gains more by them than that takes.

To the bit they do what torch does, and for less. A small model's few thousand numbers take less
time than torch's calls, whose code a backward pass has driven out of the cache; a large model's
millions come from memory and go there once where torch takes several passes.

    blend            new ← a + w (b − a), from the nearer end
    descend          new ← old + r g
    descend_between  new ← old + r (a + w (b − a))
    stream           as descend, but `new` goes past the cache, and what it was is not read

But for the last, `new` may be one of the others. Written in LLVM's own language, which makes
vectors of the loops for the processor it runs on.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

TAKES = 0.15  # seconds of a worker, until it has them
SAVES = 2e-5, 3e-10  # seconds a step, and for each parameter
WIDE = 16  # floats at a time that go past the cache; where they go must be a multiple of them

# Numbers do not depend on each other, even where what is read is what is written: `!0` says so.
_LOOP = """
define void @{name}(ptr %at.new, {takes}, i64 %count) {{
start:
  br label %each
each:
  %i = phi i64 [0, %start], [%next, %each]
{body}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done, !llvm.loop !0
done:
  ret void
}}
"""
_LOAD = """
  %i.{name} = getelementptr float, ptr %at.{name}, i64 %i
  %{name} = load float, ptr %i.{name}, !llvm.access.group !2"""
_STORE = """
  %i.new = getelementptr float, ptr %at.new, i64 %i
  store float %new, ptr %i.new, !llvm.access.group !2"""
_COMMON = """
declare float @llvm.fma.f32(float, float, float)
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.parallel_accesses", !2}
!2 = distinct !{}
"""


def _fma(to: str, a: str, b: str, c: str) -> str:
    return f"\n  %{to} = call float @llvm.fma.f32(float %{a}, float %{b}, float %{c})"


def _loop(name: str, vectors: list[str], numbers: list[str], arithmetic: str) -> str:
    """A function of the addresses of `new` and `vectors`, of `numbers`, and of how many."""
    takes = [f"ptr %at.{name}" for name in vectors] + [f"float %{name}" for name in numbers]
    loads = "".join(_LOAD.format(name=name) for name in vectors)
    return _LOOP.format(name=name, takes=", ".join(takes), body=loads + arithmetic + _STORE)


_STREAM = """
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
!3 = !{i32 1}
define void @stream(ptr %at.new, ptr %at.old, ptr %at.g, float %r, i64 %count) {
start:
  %one = insertelement <16 x float> poison, float %r, i64 0
  %rs = shufflevector <16 x float> %one, <16 x float> poison, <16 x i32> zeroinitializer
  br label %each
each:
  %i = phi i64 [0, %start], [%next, %each]
  %i.old = getelementptr float, ptr %at.old, i64 %i
  %i.g = getelementptr float, ptr %at.g, i64 %i
  %i.new = getelementptr float, ptr %at.new, i64 %i
  %old = load <16 x float>, ptr %i.old, align 4
  %g = load <16 x float>, ptr %i.g, align 4
  %new = call <16 x float> @llvm.fma.v16f32(<16 x float> %rs, <16 x float> %g, <16 x float> %old)
  store <16 x float> %new, ptr %i.new, align 64, !nontemporal !3
  %next = add i64 %i, 16
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  fence seq_cst  ; others see it before they see what is written after
  ret void
}
"""
_BETWEEN = """
  %near = fcmp olt float %w, 0.5
  %back = fsub float %w, 1.0
  %part = select i1 %near, float %w, float %back
  %end = select i1 %near, float %a, float %b
  %way = fsub float %b, %a"""
_TEXT = "".join(
    (
        _COMMON,
        _STREAM,
        _loop("blend", ["a", "b"], ["w"], _BETWEEN + _fma("new", "part", "way", "end")),
        _loop("descend", ["old", "g"], ["r"], _fma("new", "r", "g", "old")),
        _loop(
            "descend_between",
            ["old", "a", "b"],
            ["w", "r"],
            _BETWEEN + _fma("mean", "part", "way", "end") + _fma("new", "r", "mean", "old"),
        ),
    )
)
_ADDRESS, _NUMBER, _COUNT = ctypes.c_void_p, ctypes.c_float, ctypes.c_int64


class Kernels:
    """All take addresses of contiguous float32 vectors of at least one number, on the CPU.

    `stream` takes multiples of WIDE numbers, to where 64 bytes begin.
    """

    def __init__(self) -> None:
        import llvmlite.binding as llvm  # a tenth of a second: for those alone who ask

        features = llvm.get_host_cpu_features()
        if "fma" in features and not features["fma"]:
            raise RuntimeError("this processor would round twice where torch's results do once.")
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=3
        )
        module = llvm.parse_assembly(_TEXT)
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(3))
        builder.getModulePassManager().run(module, builder)
        self._engine = llvm.create_mcjit_compiler(module, machine)  # the code is its
        self._engine.finalize_object()
        self.blend = self._function("blend", 3, 1)
        self.descend = self._function("descend", 3, 1)
        self.descend_between = self._function("descend_between", 4, 2)
        self.stream = self._function("stream", 3, 1)

    def _function(self, name: str, vectors: int, numbers: int) -> Any:
        takes = [_ADDRESS] * vectors + [_NUMBER] * numbers + [_COUNT]
        return ctypes.PYFUNCTYPE(None, *takes)(self._engine.get_function_address(name))


@cache
def kernels() -> Kernels | None:
    """Compiled once a process; None where that cannot be, or would not be what torch does."""
    try:
        return Kernels()
    except (ImportError, RuntimeError, OSError):
        return None


def worthwhile(size: int, steps: int) -> Kernels | None:
    """For a worker with a model of this size that is to take so many steps."""
    a_step, a_parameter = SAVES
    return kernels() if steps * (a_step + size * a_parameter) > TAKES else None
