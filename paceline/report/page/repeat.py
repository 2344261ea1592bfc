"""What it takes to do it again: the command, the spec, and where it was done."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from paceline.report.layout import Column
from paceline.report.page.document import Grid, Listing, Part, Words
from paceline.report.words import NONE, number
from paceline.spec import RunSpec, write_toml

ALWAYS = ("task", "strategy", "workers")
GIVEN = {
    "object": "The task was given as a Python object: the file alone does not repeat it.",
    "script": "The loop is the script's own: the command repeats it, the file alone does not.",
}


def repeat_run(about: Mapping[str, Any]) -> list[Part]:
    """From what a run's spec.json holds."""
    spec = about["spec"]
    told = {
        name: spec[name]
        for name, field in RunSpec.model_fields.items()
        if name in spec and (name in ALWAYS or _plain(spec[name]) != _plain(field.default))
    }
    warning = GIVEN.get(about.get("given") or "")
    return [
        *([Words(text=warning)] if warning else []),
        _command(about),
        Listing(
            caption="The spec, for paceline run --spec FILE; what is not in it has its default",
            text=write_toml(told),
            language="toml",
        ),
        _where(about),
    ]


def repeat_sweep(about: Mapping[str, Any]) -> list[Part]:
    """From what a sweep's study.json holds."""
    study = dict(about["study"])
    target = study.pop("target", None)
    study |= {"target": {target[0]: target[1]} if target else None}
    seed = study.pop("order_seed", 0)
    text = write_toml({key: value for key, value in study.items() if value != ""})
    return [
        _command(about),
        Listing(
            caption=f"The study, for paceline sweep FILE --order-seed {seed}",
            text=text,
            language="toml",
        ),
        _where(about),
    ]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _command(about: Mapping[str, Any]) -> Listing:
    return Listing(caption="The command", text=command(about.get("command") or []), language="sh")


def command(argv: list[str]) -> str:
    """As it would be typed: `paceline run --workers 2`."""
    program = PurePath(argv[0]) if argv else PurePath("paceline")
    ours = program.name == "paceline" or program.match("paceline/cli/__main__.py")
    first = ["paceline"] if ours else ["python", str(program)]
    return shlex.join([*first, *argv[1:]]) + "\n"


def _where(about: Mapping[str, Any]) -> Grid:
    host, versions = about.get("host") or {}, about.get("versions") or {}
    memory = host.get("memory_bytes")
    rows = {
        "started": about.get("started"),
        "Paceline": about.get("paceline"),
        "commit": about.get("commit"),
        **{name.capitalize(): version for name, version in versions.items()},
        "host": host.get("name"),
        "processor": host.get("cpu"),
        "cores": number(host.get("cores")),
        "memory": None if memory is None else f"{memory / 1e9:.1f} GB",
        "system": host.get("os"),
    }
    return Grid(
        caption="Where and with what",
        columns=[
            Column(title="", cells=list(rows), words=True),
            Column(title="value", cells=[str(v or NONE) for v in rows.values()], words=True),
        ],
    )
