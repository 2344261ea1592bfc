"""What the live page takes: how long pages take to come, and what watching takes from a run.

    python -m bench.dashboard --runs 500 --repeats 6

Pages: over a folder with so many recorded runs (copies of one), while a run with ten roles is
under way. Watching: the same run in turns with nobody watching, and with two streams that read
along (its own page's and the list's); the server's own CPU time stands beside the ratio of rates.
With `--browser` a Chromium on this machine, which draws, is a third.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil

SMALL = ("--task", "softmax", "--strategy", "ps-async", "--workers", "2", "--epochs", "1")
TEN = (
    *("--task", "softmax", "--strategy", "ps-async", "--transport", "tcp"),
    *("--workers", "8", "--servers", "2", "--epochs", "100000"),
)
WATCHED = ("--task", "lenet", "--strategy", "ps-sync", "--workers", "2", "--epochs", "3")
PAGES = 30
LIMIT = 240  # seconds that any command may take
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def started(verb: str, root: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "paceline.cli", verb, *arguments, "--out", str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


@contextlib.contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """By Ctrl-C, and waited for."""
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def served(root: Path) -> Iterator[tuple[int, psutil.Process]]:
    """The port of a page over `root`, and its process."""
    with ended(started("serve", root, "--port", "0")) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().strip().rstrip("/").rpartition(":")[2])
        yield port, psutil.Process(process.pid)


def newest(root: Path, before: set[str]) -> str:
    """The run that was not there before, once it takes steps."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for path in root.iterdir():
            if path.name not in before and path.name[0] != "." and any((path / "steps").iterdir()):
                return path.name
        time.sleep(0.02)
    raise TimeoutError("the run does not begin")


def times(port: int, path: str) -> list[float]:
    """Milliseconds from asking to the last byte."""
    found = []
    for _ in range(PAGES):
        began = time.perf_counter()
        line = http.client.HTTPConnection("localhost", port, timeout=30)
        line.request("GET", path)
        answer = line.getresponse()
        answer.read()
        assert answer.status == 200, path
        found.append(1000 * (time.perf_counter() - began))
        line.close()
        time.sleep(0.2)
    return found


def tell(what: str, found: Sequence[float], unit: str = "ms") -> None:
    print(
        f"{what:44} median {statistics.median(found):7.1f} {unit}, "
        f"{min(found):.1f} to {max(found):.1f}"
    )


def pages(root: Path, count: int, browser: Any) -> None:
    subprocess.run(
        [sys.executable, "-m", "paceline.cli", "run", *SMALL, "--quiet", "--out", str(root)],
        check=True,
        timeout=LIMIT,
    )
    (one,) = root.iterdir()
    for n in range(1, count):
        shutil.copytree(one, root / f"{one.name}-{n}")
    before = {path.name for path in root.iterdir()}
    with served(root) as (port, _), ended(started("run", root, *TEN)):
        live = newest(root, before)
        time.sleep(3)
        tell(f"list of {count} runs, 10 live roles", times(port, "/"))
        tell("page of the live run", times(port, f"/at/{live}"))
        tell("page of a recorded run", times(port, f"/at/{one.name}"))
        if browser:
            for what, path in (
                ("list", "/"),
                ("live run", f"/at/{live}"),
                ("no such run, a page of one sentence", "/at/none"),
            ):
                painted, loaded = zip(*opened(browser, port, path), strict=True)
                tell(f"{what}: first paint", painted)
                tell(f"{what}: loaded in Chromium", loaded)


def opened(browser: Any, port: int, path: str) -> list[tuple[float, float]]:
    """Milliseconds until something is painted, and until the page has loaded; its script comes from
    the cache, as the second time."""
    page = browser.new_page()
    found = []
    for _ in range(8):
        page.goto(f"http://localhost:{port}{path}")
        page.wait_for_timeout(800)
        found.append((float(page.evaluate(PAINTED)), float(page.evaluate(LOADED))))
    page.close()
    return found[1:]


class Reader(threading.Thread):
    """Reads a stream to nowhere."""

    def __init__(self, port: int, key: str) -> None:
        super().__init__(daemon=True)
        self.bytes = 0
        self._line = http.client.HTTPConnection("localhost", port, timeout=60)
        self._line.request("GET", "/live?" + urlencode({"of": key}))
        self._answer = self._line.getresponse()
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            while chunk := self._answer.read1(65536):
                self.bytes += len(chunk)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            if self._line.sock is not None:
                self._line.sock.shutdown(2)


def watching(root: Path, repeats: int, browser: Any) -> None:
    ways = ["nobody", "streams", *(["Chromium"] if browser else [])]
    rates: dict[str, list[float]] = {way: [] for way in ways}
    cpu: dict[str, list[float]] = {way: [] for way in ways}
    with served(root) as (port, process):
        for repeat in range(repeats):
            for way in ways[repeat % len(ways) :] + ways[: repeat % len(ways)]:
                rate, used = watched(root, port, process, way, browser)
                rates[way].append(rate)
                cpu[way].append(used)
                print(f"  {way:9} {rate:8.0f} samples/s, server {used:.2f} %", file=sys.stderr)
    tell("samples/s, nobody watches", rates["nobody"], "  ")
    for way in ways[1:]:
        pairs = zip(rates[way], rates["nobody"], strict=True)
        tell(f"{way}: rate to that of nobody", [100 * one / two for one, two in pairs], "%")
        tell(f"{way}: the server's part of all cores", cpu[way], "%")


def watched(
    root: Path, port: int, process: psutil.Process, way: str, browser: Any
) -> tuple[float, float]:
    """Samples a second of one run, and the server's CPU time in percent of all cores meanwhile."""
    before = {path.name for path in root.iterdir()}
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(ended(started("run", root, *WATCHED, "--json")))
        name = newest(root, before)
        page = None
        if way == "streams":
            for key in (name, ""):
                stack.callback(Reader(port, key).close)
        elif way == "Chromium":
            page = stack.enter_context(contextlib.closing(browser.new_page()))
            page.goto(f"http://localhost:{port}/at/{name}")
        began, spent = time.monotonic(), sum(process.cpu_times()[:2])
        while run.poll() is None:
            if page is not None:
                page.wait_for_timeout(100)  # its events are handled meanwhile
            else:
                time.sleep(0.1)
        used = sum(process.cpu_times()[:2]) - spent
        part = 100 * used / (time.monotonic() - began) / (os.cpu_count() or 1)
        assert run.stdout is not None
        summary = json.loads(run.stdout.read())
    return float(summary["throughput"]["samples_per_second"]), part


@contextlib.contextmanager
def chromium(wanted: bool) -> Iterator[Any]:
    if not wanted:
        yield None
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        args = [] if os.geteuid() else ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=args)
        yield browser
        browser.close()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=500, help="recorded ones; 0: no pages")
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--browser", action="store_true", help="have Chromium watch, too")
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, chromium(args.browser) as browser:
        recorded, other = Path(folder) / "recorded", Path(folder) / "watched"
        recorded.mkdir()
        other.mkdir()
        if args.runs:
            pages(recorded, args.runs, browser)
        watching(other, args.repeats, browser)


if __name__ == "__main__":
    main()
