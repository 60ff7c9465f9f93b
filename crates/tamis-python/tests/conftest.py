"""What several test files use: one row for each kind of set, child processes and deadlines."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tamis

REPOSITORY = Path(__file__).resolve().parents[3]
GOLDEN = REPOSITORY / "tests" / "golden"


class Kind(NamedTuple):
    """How to create an empty set of a kind, and what the kind can do."""

    name: str
    create: Callable[..., tamis.Filter]
    is_exact: bool = False
    counts: bool = False
    """Whether the kind removes and counts items."""
    has_file: bool = True
    merges: bool = True


def kinds(items: int = 4_000) -> list[Kind]:
    """Return one row for each kind. `items` is the planned number of items."""
    # A cuckoo filter does not take all possible lists of items at its capacity.
    return [
        Kind("split-block", lambda **k: tamis.Bloom(items, 0.01, **k)),
        Kind("classic", lambda **k: tamis.Bloom(items, 0.01, kind="classic", **k)),
        Kind("parquet", lambda **k: tamis.Bloom(items, 0.01, kind="parquet", **k)),
        Kind("shared", lambda **k: tamis.SharedBloom(items, 0.01, **k)),
        Kind("growing", lambda **k: tamis.Growing(0.001, items=100, **k), merges=False),
        Kind("cuckoo", lambda **k: tamis.Cuckoo(4 * items, 0.01, **k), counts=True),
        Kind("counting", lambda **k: tamis.Counting(items, 0.01, **k), counts=True),
        Kind("window-items", lambda **k: tamis.Window(items, 0.01, **k)),
        Kind("window-time", lambda **k: tamis.Window(items, 0.01, seconds=1e6, clock=False, **k)),
        Kind("digests-128", lambda **k: tamis.DigestSet(**k), is_exact=True, has_file=False),
        Kind(
            "digests-64", lambda **k: tamis.DigestSet(bits=64, **k), is_exact=True, has_file=False
        ),
    ]


KINDS = kinds()
INT_SET = Kind("integers", lambda **_: tamis.IntSet(), is_exact=True)
ALL_KINDS = [*KINDS, INT_SET]


def each_kind(rows: list[Kind]) -> Any:
    """Return a decorator that runs a test for each row, as the argument `kind`."""
    return pytest.mark.parametrize("kind", rows, ids=[row.name for row in rows])


def python(script: str, *arguments: str, seconds: float = 30) -> subprocess.CompletedProcess[str]:
    """Run a script in a child process, and fail if it does not end in time."""
    command = [sys.executable, "-X", "faulthandler", "-c", script, *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"the child process did not end within {seconds} s:\n{script}\n{out}\n{err}")
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def ends_well(script: str, *arguments: str, seconds: float = 30) -> str:
    """Run a script in a child process that must exit with status 0. Returns what it printed."""
    done = python(script, *arguments, seconds=seconds)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def environment() -> dict[str, str]:
    """Return the environment of a child process that imports this package."""
    paths = [str(Path(tamis.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


class Thread(threading.Thread):
    """A thread whose exception fails the test, and whose end has a deadline."""

    def __init__(self, target: Callable[[], object], what: str) -> None:
        super().__init__(daemon=True)
        self.action, self.what = target, what
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.action()
        except BaseException as error:  # noqa: BLE001
            self.error = error

    def finish(self, seconds: float = 30) -> None:
        self.join(seconds)
        if self.is_alive():
            pytest.fail(f"the thread did not end within {seconds} s: {self.what}")
        if self.error is not None:
            raise self.error


def side_by_side(*actions: Callable[[], object], seconds: float = 30) -> None:
    """Run each action in a thread, and wait for all of them."""
    threads = [Thread(action, f"action {i} of {len(actions)}") for i, action in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.finish(seconds)


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
    """Wait until a condition is true, and fail if it stays false."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"waited {seconds} s for {what}")
        time.sleep(0.001)


def for_a_while(action: Callable[[], object], seconds: float = 0.4) -> Callable[[], None]:
    """Return an action that repeats an action."""

    def repeat() -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            action()

    return repeat


@pytest.fixture(autouse=True)
def no_files_stay_in_the_working_folder() -> Iterator[None]:
    """Fail a test that leaves a file beside the tests."""
    before = set(os.listdir())
    yield
    assert set(os.listdir()) - before <= {".pytest_cache", ".hypothesis", "__pycache__"}


PROGRAM = Path(sys.executable).with_name("tamis")

needs_program = pytest.mark.skipif(
    not PROGRAM.exists(), reason="this environment has no program `tamis`: install the wheel"
)


def server_program() -> str:
    """Return a program with `tamis serve`: ``TAMIS``, or the program of this environment.

    The program of a wheel has no server. Skips the test if no program has a server.
    """
    program = os.environ.get("TAMIS", str(PROGRAM))
    try:
        subprocess.run([program, "serve", "--help"], capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no program `tamis` with a server: set TAMIS to its path")
    return program


@pytest.fixture
def server_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Start `tamis serve` on a free port, and wait until the server answers commands."""
    program = server_program()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("server")
    command = [program, "serve", "--port", str(port), "--dir", folder, "--http-port", "no"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not _answers(port):
            assert server.poll() is None, "the server has ended"
            assert time.monotonic() < deadline, "the server did not answer in time"
            time.sleep(0.05)
        yield port
    finally:
        server.terminate()
        server.wait(60)


def _answers(port: int) -> bool:
    """Test whether the server answers commands. While it loads, a server answers with an error."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as client:
            client.sendall(b"PING\r\n")
            return client.makefile("rb").readline() == b"+PONG\r\n"
    except OSError:
        return False
