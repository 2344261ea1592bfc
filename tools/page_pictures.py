"""Pictures of pages in the documentation, from real runs: part of `make pictures`.

A small run of each of two strategies is recorded, a third is under way, and its page is taken as
Chromium shows it. Nothing is retouched.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SIZE = {"width": 1180, "height": 1000}
RECORDED = (
    ("--task", "softmax", "--strategy", "single", "--epochs", "2"),
    ("--task", "softmax", "--strategy", "ps-async", "--workers", "2", "--epochs", "2"),
)
LIVE = ("--task", "lenet", "--strategy", "ps-sync", "--workers", "2", "--epochs", "20")
SECONDS = 20  # of the live run, before its picture is taken


def paceline(verb: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "paceline.cli", verb, *arguments, "--out", "runs"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=Path.cwd()
    )


def main() -> None:
    program = shutil.which("chromium")
    if program is None:
        sys.exit("there is no chromium on the PATH: apt install chromium")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for arguments in RECORDED:
            if paceline("run", *arguments, "--quiet").wait(120):
                sys.exit(f"paceline run {' '.join(arguments)} failed")
        run, serving = paceline("run", *LIVE, "--quiet"), paceline("serve", "--port", "0")
        try:
            assert serving.stdout is not None
            address = re.findall(r"http://\S+", serving.stdout.readline())[0]
            time.sleep(SECONDS)
            shoot(program, address)
        finally:
            for process in (run, serving):
                process.send_signal(signal.SIGINT)
            for process in (run, serving):
                process.wait(30)
            os.chdir("/")


def shoot(program: str, address: str) -> None:
    with sync_playwright() as playwright:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=program, args=sandbox)
        page = browser.new_page(viewport=SIZE)
        page.goto(address)
        page.click("tbody a")
        page.wait_for_selector(".main-svg")
        page.wait_for_timeout(4000)
        page.screenshot(path=PICTURES / "serve.png")
        browser.close()


if __name__ == "__main__":
    main()
