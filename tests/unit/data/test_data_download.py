from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from paceline.data.download import fetch
from paceline.errors import DataError

CONTENT = b"content " * 10_000
MD5 = "md5:" + hashlib.md5(CONTENT).hexdigest()
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        if self.path == "/short":
            self.wfile.write(CONTENT[:5000])
        elif self.path == "/drip":
            for place in range(40):
                self.wfile.write(CONTENT[place : place + 1])
                time.sleep(0.05)
        else:
            self.wfile.write(CONTENT)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("checksum", [MD5, SHA256])
def test_a_file_arrives_whole(site: str, tmp_path: Path, checksum: str) -> None:
    target = tmp_path / "new" / "file"
    fetch(f"{site}/file", target, checksum)
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize(
    ("page", "checksum", "why"),
    [
        ("missing", MD5, "the server answered 404"),
        ("file", "md5:" + "0" * 32, "what came has md5"),
        ("short", MD5, "what came has md5"),
        ("drip", MD5, "not done after 0.2 seconds"),
    ],
)
def test_a_failure_names_the_address_and_the_remedy(
    site: str, tmp_path: Path, page: str, checksum: str, why: str
) -> None:
    target = tmp_path / "file"
    with pytest.raises(DataError, match=why) as told:
        fetch(f"{site}/{page}", target, checksum, limit=0.2 if page == "drip" else 10)
    assert f"{site}/{page}" in str(told.value)
    assert "--data-dir" in str(told.value)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="refused"):
        fetch("http://127.0.0.1:9/file", tmp_path / "file", MD5)


def test_a_target_that_cannot_be_written_is_told(site: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"(?i)not a directory|exists"):
        fetch(f"{site}/file", tmp_path / "file" / "below", MD5)
