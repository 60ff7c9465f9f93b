"""The programs of the pages run, and their assertions hold."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, needs_program

PAGES = (
    "docs/python.md",
    "docs/python.zh-CN.md",
    "docs/python-migration.md",
    "crates/tamis-python/README.md",
)
DEADLINE_SECONDS = 60


def programs() -> list[tuple[str, str]]:
    """Return each program of each page, with the name of its page and its line."""
    found = []
    for page in PAGES:
        text = (REPOSITORY / page).read_text(encoding="utf-8")
        for block in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, block.start()) + 1
            found.append((f"{page}:{line}", block.group(1)))
    return found


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


@needs_program
@pytest.mark.parametrize("program", [code for _, code in SERVER], ids=[name for name, _ in SERVER])
def test_a_program_for_a_server_runs(program: str, server_port: int, tmp_path: Path) -> None:
    run(program.replace("port=6379", f"port={server_port}"), tmp_path)


def test_the_pages_have_programs_for_files_and_servers() -> None:
    assert len(LOCAL) >= 10 and len(SERVER) >= 2
