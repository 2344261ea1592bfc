"""What a run is: one frozen description, read from flags, TOML or Python, checked whole."""

from paceline.spec.runspec import RunSpec
from paceline.spec.toml import read_toml, write_toml

__all__ = ["RunSpec", "read_toml", "write_toml"]
