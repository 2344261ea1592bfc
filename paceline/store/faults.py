"""What the disk refused, as one sentence with a remedy."""

from __future__ import annotations

import errno
from pathlib import Path

from paceline.errors import StoreError

REMEDIES = {
    errno.ENOSPC: "free some space there or choose another folder with --out",
    errno.EDQUOT: "free some of your quota or choose another folder with --out",
    errno.EACCES: "make it writable or choose another folder with --out",
    errno.EPERM: "make it writable or choose another folder with --out",
    errno.EROFS: "choose a folder that can be written with --out",
    errno.ENOENT: "the run's folder may have been removed while it was in use",
    errno.ENOTDIR: "choose a folder, not a file, with --out",
    errno.EEXIST: "choose a folder, not a file, with --out",
    errno.EMFILE: "raise the limit of open files with ulimit -n",
}


def cannot_write(path: Path, wrong: OSError) -> StoreError:
    """`cannot write 'runs/a/spec.json': no space left on device; free some space there or …`"""
    remedy = REMEDIES.get(wrong.errno or 0)
    return StoreError(f"cannot write '{path}': {_why(wrong)}{'; ' + remedy if remedy else ''}.")


def cannot_read(path: Path, wrong: OSError) -> StoreError:
    return StoreError(f"cannot read '{path}': {_why(wrong)}.")


def _why(wrong: OSError) -> str:
    return (wrong.strerror or str(wrong)).lower()
