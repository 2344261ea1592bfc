"""How fast the same training is elsewhere: raw torch DDP, TensorFlow, a Ray actor; and here.

    make bench-peers                               creates the peers' environments, then all of it
    python -m bench.peers --models mlp --contenders 'ps-async shm,TensorFlow PS' --repeats 2

Everything is measured in one interleaved run, as in bench.exchange. Peers other than torch's live
in environments of their own under .venv-peers, so that Paceline's stays light.
"""

from __future__ import annotations

import json

from bench.catalog import PEERS
from bench.contenders import environment, measure
from bench.interleave import main
from bench.processes import outputs

PACKAGES = {"tensorflow": "tensorflow_cpu", "ray": "ray"}


def versions() -> dict[str, str]:
    """Of the peers, as their environments have them."""
    found = {}
    for name, package in PACKAGES.items():
        code = f"import json, importlib.metadata as m; print(json.dumps(m.version({package!r})))"
        found[name] = json.loads(outputs([[str(environment(name)), "-c", code]], 60)[0])
    return found


if __name__ == "__main__":
    main(PEERS, __doc__, measure, versions)
