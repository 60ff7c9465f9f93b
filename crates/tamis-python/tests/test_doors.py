"""The same item is the same bits in Python, in Rust, on the command line and on a server.

`golden/items.tamis` holds `ITEMS`. The Rust test `items_of_python.rs` of the crate tamis-formats
builds the same file from the same items.
"""

from __future__ import annotations

import subprocess
import uuid
from pathlib import Path

import pytest
import tamis
from conftest import PROGRAM, needs_program

GOLDEN = Path(__file__).with_name("golden") / "items.tamis"
DEADLINE_SECONDS = 60

TEXTS = ["", "a", "https://example.org/", "中文", "é", "\0", "x" * 200]
ITEMS = [
    *TEXTS,
    b"\xff\x00",
    0,
    42,
    -1,
    2**63,
    uuid.UUID("01020304-0506-0708-090a-0b0c0d0e0f10"),
    ("user", 7),
    (1, 2),
    ("a", b"b", ("c", 3)),
]
ABSENT = ["b", "https://example.com/", "中", "y" * 200]


def seen() -> tamis.Bloom:
    seen = tamis.Bloom(1_000, 0.001)
    for item in ITEMS:
        assert seen.add(item)
    return seen


def test_python_writes_the_golden_file() -> None:
    stored = tamis.open(GOLDEN)
    assert stored == seen()
    assert all(item in stored for item in ITEMS)
    assert not any(item in stored for item in ABSENT)


def test_equal_items_give_equal_bytes_as_in_rust() -> None:
    assert seen().to_bytes() == GOLDEN.read_bytes()


def run(*words: object, input: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in (PROGRAM, *words)]
    return subprocess.run(
        command, input=input, capture_output=True, encoding="utf-8", timeout=DEADLINE_SECONDS
    )


# The program reads one item a line, and skips empty lines.
LINES = [text for text in TEXTS if text and "\0" not in text]


@needs_program
def test_the_program_finds_the_items_of_python(tmp_path: Path) -> None:
    path = tmp_path / "python.tamis"
    seen().save(path)
    found = run("check", path, input="\n".join([*LINES, *ABSENT]) + "\n")
    assert found.stdout.splitlines() == LINES, found.stderr


@needs_program
def test_python_finds_the_items_of_the_program(tmp_path: Path) -> None:
    path, items = tmp_path / "program.tamis", tmp_path / "items.txt"
    items.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    built = run("build", items, "-o", path, "--items", 1_000, "--rate", 0.001)
    assert built.returncode == 0, built.stderr
    stored = tamis.open(path)
    assert stored.contains(LINES) == [True] * len(LINES)
    assert stored.contains(ABSENT) == [False] * len(ABSENT)
    ours = tamis.Bloom(1_000, 0.001)
    ours.update(LINES)
    assert stored == ours


@needs_program
def test_a_server_and_python_find_the_items_of_each_other(server_port: int) -> None:
    redis = pytest.importorskip("redis")
    with redis.Redis(port=server_port, socket_timeout=DEADLINE_SECONDS) as client:
        client.execute_command("TM.LOAD", "seen", seen().to_bytes())
        keys = [text.encode() for text in TEXTS] + [b"\xff\x00"]
        absent = [text.encode() for text in ABSENT]
        assert client.execute_command("TM.MEXISTS", "seen", *keys, *absent) == [
            *[1] * len(keys),
            *[0] * len(absent),
        ]
        client.execute_command("TM.ADD", "seen", "from the server")
        back = tamis.from_bytes(client.execute_command("TM.DUMP", "seen"))
        assert "from the server" in back
        assert all(item in back for item in ITEMS)
