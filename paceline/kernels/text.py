"""The loops in LLVM's own language, which makes vectors of them for the processor it runs on.

    blend            new ← end + w (b − a)
    descend          new ← old + r g
    descend_between  new ← old + r (end + w (b − a))
    stream           as descend, but `new` goes past the cache, and what it was is not read
    pour             new ← g, likewise
    gather           new ← s · rows, of bytes; ends before a row that is not there: how many it did

But for the last three, `new` may be one of the others. None of them has constants: code that looks
up nothing can lie anywhere.
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


_PAST = """
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
!3 = !{i32 1}
define void @%NAME%(ptr %at.new, %TAKES%, i64 %count) {
start:%BEFORE%
  br label %each
each:
  %i = phi i64 [0, %start], [%next, %each]
  %i.new = getelementptr float, ptr %at.new, i64 %i%BODY%
  store <16 x float> %new, ptr %i.new, align 64, !nontemporal !3
  %next = add i64 %i, 16
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  fence seq_cst  ; others see it before they see what is written after
  ret void
}
"""
_WIDE = """
  %i.{name} = getelementptr float, ptr %at.{name}, i64 %i
  %{to} = load <16 x float>, ptr %i.{name}, align 4"""


def _past(name: str, takes: str, before: str, body: str) -> str:
    """A loop whose `new` goes past the cache."""
    parts = {"NAME": name, "TAKES": takes, "BEFORE": before, "BODY": body}
    text = _PAST
    for part, given in parts.items():
        text = text.replace(f"%{part}%", given)
    return text


_RATES = """
  %one = insertelement <16 x float> poison, float %r, i64 0
  %rs = shufflevector <16 x float> %one, <16 x float> poison, <16 x i32> zeroinitializer"""
_DESCENDED = """
  %new = call <16 x float> @llvm.fma.v16f32(<16 x float> %rs, <16 x float> %g, <16 x float> %old)"""
# Rows lie anywhere in memory: one is brought near while the second before it is at work.
_GATHER = """
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.parallel_accesses", !2}
!2 = distinct !{}
define i64 @gather(ptr %at.new, ptr %at.all, ptr %at.rows, float %s,
                   i64 %count, i64 %width, i64 %length) {
start:
  br label %each.row
each.row:
  %r = phi i64 [0, %start], [%r.next, %done.row]
  %left = icmp ult i64 %r, %count
  br i1 %left, label %look, label %done
look:
  %r.at = getelementptr i64, ptr %at.rows, i64 %r
  %row = load i64, ptr %r.at
  %there = icmp ult i64 %row, %length
  br i1 %there, label %ahead, label %done
ahead:
  %r.ahead = add i64 %r, 2
  %more.ahead = icmp ult i64 %r.ahead, %count
  %r.near = select i1 %more.ahead, i64 %r.ahead, i64 %r
  %near.at = getelementptr i64, ptr %at.rows, i64 %r.near
  %near = load i64, ptr %near.at
  %near.first = mul i64 %near, %width
  br label %each.line
each.line:
  %line = phi i64 [0, %ahead], [%line.next, %each.line]
  %line.first = add i64 %near.first, %line
  %line.at = getelementptr i8, ptr %at.all, i64 %line.first
  call void @llvm.prefetch.p0(ptr %line.at, i32 0, i32 3, i32 1)
  %line.next = add i64 %line, 64
  %more.lines = icmp ult i64 %line.next, %width
  br i1 %more.lines, label %each.line, label %row.begin
row.begin:
  %first = mul i64 %row, %width
  %from = getelementptr i8, ptr %at.all, i64 %first
  %to.first = mul i64 %r, %width
  %to = getelementptr float, ptr %at.new, i64 %to.first
  br label %each
each:
  %i = phi i64 [0, %row.begin], [%next, %each]
  %i.from = getelementptr i8, ptr %from, i64 %i
  %byte = load i8, ptr %i.from, !llvm.access.group !2
  %number = uitofp i8 %byte to float
  %new = fmul float %number, %s
  %i.to = getelementptr float, ptr %to, i64 %i
  store float %new, ptr %i.to, !llvm.access.group !2
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %width
  br i1 %more, label %each, label %done.row, !llvm.loop !0
done.row:
  %r.next = add i64 %r, 1
  br label %each.row
done:
  ret i64 %r
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
    "stream": _past(
        "stream",
        "ptr %at.old, ptr %at.g, float %r",
        _RATES,
        _WIDE.format(name="old", to="old") + _WIDE.format(name="g", to="g") + _DESCENDED,
    ),
    "pour": _past("pour", "ptr %at.g", "", _WIDE.format(name="g", to="new")),
    "gather": _GATHER,
}
