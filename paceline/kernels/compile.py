"""Compile the loops for this machine into a file. A process of its own, which LLVM's memory and the
time to import it end with.

    python -m paceline.kernels.compile FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

import llvmlite.binding as llvm

from paceline.kernels.code import write_code
from paceline.kernels.text import TEXTS


def compiled(text: str) -> bytes:
    """The machine's code of a text with one function. RuntimeError if it needs anything beside."""
    features = llvm.get_host_cpu_features()
    if features.get("fma") is False:
        raise RuntimeError("this processor rounds twice where torch's results do once")
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=features.flatten(),
        opt=3,
        reloc="pic",
        codemodel="small",
    )
    module = llvm.parse_assembly(text)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(3))
    builder.getModulePassManager().run(module, builder)
    made = machine.emit_object(module)
    opened = llvm.ObjectFileRef.from_data(made)  # looks into `made`, which has to stay
    sections = {section.name() or b"": section.data() for section in opened.sections()}
    code: bytes = sections.get(b".text", b"")
    if not code or any(name.startswith(b".rela") for name in sections):
        raise RuntimeError("this processor's code looks up constants")
    return code


def main(path: Path) -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_code(path, {name: compiled(text) for name, text in TEXTS.items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
