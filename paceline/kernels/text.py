"""The loops in LLVM's own language, which makes vectors of them for the processor it runs on.

    blend            new ← end + w (b − a)
    descend          new ← old + r g
    descend_between  new ← old + r (end + w (b − a))
    stream           as descend, but `new` goes past the cache, and what it was is not read

But for the last, `new` may be one of the others. None of them has constants: code that looks up
nothing can lie anywhere.
"""

from __future__ import annotations

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
    body = loads + arithmetic + _STORE
    return _COMMON + _LOOP.format(name=name, takes=", ".join(takes), body=body)


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
_WAY = "\n  %way = fsub float %b, %a"
TEXTS = {
    "blend": _loop("blend", ["end", "a", "b"], ["w"], _WAY + _fma("new", "w", "way", "end")),
    "descend": _loop("descend", ["old", "g"], ["r"], _fma("new", "r", "g", "old")),
    "descend_between": _loop(
        "descend_between",
        ["old", "end", "a", "b"],
        ["w", "r"],
        _WAY + _fma("mean", "w", "way", "end") + _fma("new", "r", "mean", "old"),
    ),
    "stream": _STREAM,
}
