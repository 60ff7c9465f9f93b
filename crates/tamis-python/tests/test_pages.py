"""The programs of the pages run, and their assertions hold."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = ("python.md", "python.zh-CN.md", "python-migration.md")
DEADLINE_SECONDS = 60


def programs() -> list[tuple[str, str]]:
    """Return each program of each page, with the name of its page and its line."""
    found = []
    for page in PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        for block in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, block.start()) + 1
            found.append((f"{page}:{line}", block.group(1)))
    return found


@pytest.fixture(scope="module")
def server_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Start `tamis serve` on a free port."""
    program = Path(sys.executable).with_name("tamis")
    if not program.exists():
        pytest.skip("this environment has no program `tamis`: install the wheel")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("server")
    command = [program, "serve", "--port", str(port), "--dir", str(folder), "--http-port", "no"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert server.poll() is None, server.stderr and server.stderr.read().decode()
                assert time.monotonic() < deadline, "the server did not listen in time"
                time.sleep(0.05)
        yield port
    finally:
        server.terminate()
        server.wait(DEADLINE_SECONDS)
        if server.stderr is not None:
            server.stderr.close()


def run(program: str, folder: Path) -> None:
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, path.name],
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()


LOCAL = [(name, code) for name, code in programs() if "port=6379" not in code]
SERVER = [(name, code) for name, code in programs() if "port=6379" in code]


@pytest.mark.parametrize("program", [code for _, code in LOCAL], ids=[name for name, _ in LOCAL])
def test_a_program_of_a_page_runs(program: str, tmp_path: Path) -> None:
    run(program, tmp_path)


@pytest.mark.parametrize("program", [code for _, code in SERVER], ids=[name for name, _ in SERVER])
def test_a_program_for_a_server_runs(program: str, server_port: int, tmp_path: Path) -> None:
    with socket.create_connection(("127.0.0.1", server_port), timeout=DEADLINE_SECONDS) as client:
        client.sendall(b"FLUSHALL\r\n")
        assert client.recv(5) == b"+OK\r\n"
    run(program.replace("port=6379", f"port={server_port}"), tmp_path)


def test_the_pages_have_programs_for_files_and_servers() -> None:
    assert len(LOCAL) >= 10 and len(SERVER) >= 2
