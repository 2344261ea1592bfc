import os
import subprocess
import sys

COMPILES = "numba.np.linalg"  # only what compiles needs it
SCRIPT = f"""
import sys
from paceline.kernels.jit import warm
warm()
print({COMPILES!r} in sys.modules)
"""


def test_a_kept_loop_needs_nothing_that_compiles(tmp_path):
    cache = os.environ | {"PACELINE_CACHE": str(tmp_path)}
    told = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=cache,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for _ in range(2)
    ]
    assert told == ["True", "False"]


def test_where_nothing_can_be_kept_it_is_compiled_all_the_same(tmp_path):
    taken = tmp_path / "a file"
    taken.write_text("")
    for _ in range(2):  # nor is it kept anywhere else
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | {"PACELINE_CACHE": str(taken)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
