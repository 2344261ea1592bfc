"""Files from the web, checked before they are kept."""

from __future__ import annotations

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from pathlib import Path

from paceline.errors import DataError
from paceline.files import replacing

SILENCE = 20.0  # seconds without a byte
CHUNK = 1 << 18


def fetch(url: str, target: Path, checksum: str, limit: float = 600.0) -> None:
    """Download `url` to `target` within `limit` seconds; `checksum` is `md5:…` or `sha256:…`."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as file:
            algorithm, _, expected = checksum.partition(":")
            digest = hashlib.new(algorithm, usedforsecurity=False)
            deadline = time.monotonic() + limit
            with urllib.request.urlopen(url, timeout=min(SILENCE, limit)) as answer:
                while chunk := answer.read1(CHUNK):
                    digest.update(chunk)
                    file.write(chunk)
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"not done after {limit:g} seconds")
            if digest.hexdigest() != expected:
                raise _wrong(url, target, f"what came has {algorithm} {digest.hexdigest()}")
    except (OSError, http.client.HTTPException) as wrong:
        raise _wrong(url, target, _why(wrong)) from None


def _wrong(url: str, target: Path, why: str) -> DataError:
    return DataError(
        f"cannot download {url}: {why}; "
        f"put {target.name} into a folder by hand and name the folder with --data-dir."
    )


def _why(wrong: OSError | http.client.HTTPException) -> str:
    if isinstance(wrong, urllib.error.HTTPError):
        return f"the server answered {wrong.code} {wrong.reason}"
    if isinstance(wrong, urllib.error.URLError):
        return str(wrong.reason)
    return str(wrong) or type(wrong).__name__
