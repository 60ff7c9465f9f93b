"""Forks, the end of the interpreter, and Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tamis
from conftest import ends_well

FORK = """
import os, signal, sys, threading, time
import numpy as np
import tamis

def in_child(action, seconds=20):
    "Run an action in a forked process, and fail if it does not end in time."
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)  # the default action ends the process
        try:
            action()
        except BaseException as error:
            print(f"child: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"status {status:#x} of the child"
    return time.monotonic() - began
"""

LONG = """
steps = []
end = threading.Event()
def long(operation):
    def run():
        while not end.is_set():
            operation(np.arange(30_000_000), progress=lambda done, _: steps.append(done))
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    limit = time.monotonic() + 20
    while not steps:
        assert time.monotonic() < limit, "no step within 20 s"
        time.sleep(0.001)
    return thread
"""


def test_a_filter_works_in_a_forked_process() -> None:
    ends_well(
        FORK
        + """
kinds = [tamis.Bloom(1_000_000), tamis.SharedBloom(1_000_000), tamis.Growing(), tamis.DigestSet(),
         tamis.Cuckoo(1_000_000), tamis.Window(1_000_000, seconds=100), tamis.IntSet()]
for f in kinds:
    f.update(np.arange(200_000))
    f.contains(np.arange(200_000), threads=2)
    def child():
        assert f.contains(np.arange(200_000), threads=2).all()
        f.update(np.arange(200_000, 300_000))
        f.add(500_000)
        assert f.contains(np.arange(300_000)).all() and 500_000 in f
        f.copy(), f.info(), f.clear()
    in_child(child)
    assert f.contains(np.arange(200_000)).all()
    assert f.contains(np.arange(200_000, 300_000)).sum() < 10_000
"""
    )


@pytest.mark.parametrize("kind", ["Bloom", "SharedBloom"])
def test_a_child_uses_a_filter_whose_lookups_another_thread_of_the_parent_ran(kind: str) -> None:
    ends_well(
        FORK
        + LONG
        + f"f = tamis.{kind}(1_000_000)"
        + """
f.update(np.arange(100_000))
thread = long(f.contains)
def child():
    # A read comes first: it must not hide that the readers of the parent are gone.
    assert f.contains(np.arange(100_000)).all()
    assert f == f.copy() and bool(f)
    f.add(-1)
    f.insert(np.arange(100_000, 200_000))
    assert -1 in f and f.contains(np.arange(200_000)).all()
    f.clear()
def child_writes_first():
    f.clear()
    f.add(7)
    assert 7 in f
for _ in range(10):
    in_child(child)
    in_child(child_writes_first)
    time.sleep(0.005)
end.set()
thread.join(20)
assert not thread.is_alive(), "the batch of the parent did not end"
""",
        seconds=60,
    )


def test_a_child_gets_an_error_if_another_thread_was_changing_the_filter() -> None:
    ends_well(
        FORK
        + LONG
        + """
f, free = tamis.Bloom(30_000_000), tamis.Bloom(1_000)
thread = long(f.insert)
def child():
    for operation in (f.copy, f.info, lambda: f.add(1), lambda: f.contains(np.arange(9)), f.clear):
        try:
            operation()
        except RuntimeError as error:
            assert "forked" in str(error)
        else:
            # The batch was between two steps.
            return
    repr(free)
    assert free.add(5) and 5 in free
for _ in range(10):
    in_child(child)
    time.sleep(0.007)
end.set()
thread.join(20)
assert not thread.is_alive(), "the batch of the parent did not end"
""",
        seconds=60,
    )


def test_threads_of_a_child_wait_for_each_other() -> None:
    ends_well(
        FORK
        + """
f = tamis.Bloom(2_000_000)
end = threading.Event()
def use():
    while not end.is_set():
        f.contains(np.arange(200_000))
        f.update(np.arange(1_000))
threads = [threading.Thread(target=use, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
def child():
    def work(i):
        f.update(np.arange(i * 1_000, i * 1_000 + 1_000))
        assert f.contains(np.arange(i * 1_000, i * 1_000 + 1_000)).all()
    try:
        f.info()
    except RuntimeError:
        return
    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(15)
        assert not worker.is_alive(), "a thread of the child waits"
for _ in range(30):
    in_child(child)
end.set()
""",
        seconds=60,
    )


def test_a_child_ends_at_once_although_the_parent_runs_a_batch() -> None:
    ends_well(
        FORK
        + LONG
        + """
f = tamis.Bloom(1_000_000)
thread = long(f.contains)
for _ in range(3):
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        sys.exit(0)  # runs the functions of atexit
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert time.monotonic() - began < 1.5, "the child waited for a batch of its parent"
end.set()
thread.join(20)
""",
        seconds=60,
    )


def test_a_progress_function_may_fork() -> None:
    ends_well(
        FORK
        + """
f = tamis.Growing()
parent, children = os.getpid(), []
def fork(done, total):
    if not children:
        child = os.fork()
        children.append(child)
items = np.arange(1_000_000)
f.insert(items, progress=fork)
assert f.contains(items).all()
if os.getpid() != parent:
    sys.exit(0)
_, status = os.waitpid(children[0], 0)
assert status == 0, status
""",
        seconds=30,
    )


def test_multiprocessing_gets_filters_by_pickle() -> None:
    ends_well(
        """
import multiprocessing, tamis
if __name__ == "__main__":
    f = tamis.Bloom(1_000)
    f.add("a")
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            (copy,) = pool.map_async(tamis.Bloom.copy, [f]).get(30)
            assert copy == f and "a" in copy
""",
        seconds=60,
    )


DAEMON = """
import sys, threading, time
import numpy as np
import pyarrow as pa
import tamis

started = threading.Event()
big, other = tamis.Bloom(30_000_000), tamis.Bloom(30_000_000)
shared = tamis.SharedBloom(1_000_000)
items = np.arange(5_000_000)
def numbers():
    for i in range(10**9):
        yield i
def stream():
    schema = pa.schema({"x": pa.int64()})
    batch = pa.record_batch({"x": range(1_000)})
    return pa.RecordBatchReader.from_batches(schema, (batch for _ in range(10**6)))
def repeat(action):
    def run():
        while True:
            started.set()
            action()
    return run
"""

BACKGROUND = {
    "a lookup": "big.contains(items)",
    "a lookup on two threads": "big.contains(items, threads=2)",
    "an insert": "big.insert(items)",
    "an insert on two threads": "shared.insert(items, threads=2)",
    "an Arrow batch": "big.contains(pa.array(items))",
    "progress": "big.contains(items, progress=lambda *_: None)",
    "an iterable": "big.update(numbers())",
    "an Arrow stream": "big.update(stream())",
    "a list": "big.contains(list(range(100_000)))",
    "single items": "[big.add(i) for i in range(100_000)]",
    "a copy": "big.copy()",
    "a merge": "big.__ior__(other)",
    "a comparison": "big == other",
    "a report": "big.info()",
    "bytes": "big.to_bytes()",
    "a clear": "big.clear()",
    "a new filter": "tamis.Bloom(30_000_000)",
    "a wait": "(big.insert(items), time.sleep(0))",
    "an error": "big.contains(np.array(['\\udc80'.encode('utf-8', 'surrogatepass')] * 9).view('u1'))",
}


@pytest.mark.parametrize("name", BACKGROUND)
def test_the_interpreter_exits_while_a_daemon_thread_works(name: str) -> None:
    threads = 3 if name in ("a wait", "a comparison") else 1
    for delay in (0.0, 0.05):
        ends_well(
            DAEMON
            + f"for _ in range({threads}):\n"
            + f"    threading.Thread(target=repeat(lambda: {BACKGROUND[name]}), daemon=True).start()\n"
            + f"assert started.wait(20), 'no start within 20 s'\ntime.sleep({delay})\n"
            + "print('end', flush=True)\n",
            seconds=20,
        )


def test_exit_handlers_run_batches_and_other_threads_do_not() -> None:
    out = ends_well(
        """
import atexit, threading
import numpy as np
def late():
    print(f.insert(np.arange(10)).sum(), f.contains(np.arange(11)).sum())
    print(f.add(1), 1 in f, f.contains([1, 20]))
    other = threading.Thread(target=other_thread, daemon=True)
    try:
        other.start()
    except RuntimeError as error:
        print(error)
    else:
        other.join(20)
def other_thread():
    try:
        f.contains(np.arange(10))
    except RuntimeError as error:
        print("the interpreter exits" in str(error))
atexit.register(late)
import tamis
f = tamis.Bloom(100)
# A function that was registered later runs earlier.
""",
    )
    assert "10 10\nFalse True [True, False]\n" in out
    assert "True\n" in out.partition("]\n")[2] or "can't create new thread" in out


@pytest.mark.parametrize("end", ["interpreters.destroy(one)", "pass"])
@pytest.mark.parametrize("before", ["import tamis", "pass"])
def test_a_second_interpreter_cannot_import_the_package(before: str, end: str) -> None:
    ends_well(
        f"""
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    raise SystemExit  # a newer Python has another module
import array
{before}
items = array.array("i", range(9))
one = interpreters.create()
try:
    interpreters.run_string(one, "import tamis")
except interpreters.RunFailedError as error:
    assert "ImportError" in str(error) and "main interpreter" in str(error), error
else:
    raise SystemExit("no error")
{end}
import tamis
f = tamis.Bloom(10)
assert f.insert(items) and f.contains(items) == [True] * 9
"""
    )


def test_ctrl_c_ends_a_long_batch_within_half_a_second() -> None:
    operations = {
        "f.contains(items)": "f.contains(items, progress=progress)",
        "f.insert(items)": "f.insert(items, progress=progress)",
        "threads": "f.contains(items, threads=2, progress=progress)",
        "text": "f.contains(texts, progress=progress)",
        "Arrow": "f.contains(pa.array(items), progress=progress)",
    }
    out = ends_well(
        """
import os, signal, threading, time
import numpy as np
import pyarrow as pa
import tamis

f = tamis.Bloom(1_000_000, 0.01, kind="classic")
f.update(np.arange(900_000))
import warnings
warnings.simplefilter("ignore")
items = np.arange(40_000_000)
texts = np.broadcast_to(np.array(["x" * 20]), 30_000_000)
sent = []
def progress(done, total):
    # The batch runs.
    if not sent:
        sent.append(None)
        threading.Thread(target=send).start()
def send():
    time.sleep(0.02)
    sent[0] = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
def measure(name, operation):
    for _ in range(3):
        sent.clear()
        try:
            operation()
        except KeyboardInterrupt:
            print(name, time.monotonic() - sent[0], flush=True)
        else:
            print(name, "was not interrupted", flush=True)
"""
        + "\n".join(f"measure({name!r}, lambda: {text})" for name, text in operations.items()),
        seconds=60,
    )
    times = [line.rsplit(" ", 1)[1] for line in out.splitlines()]
    assert len(times) == 3 * len(operations) and "interrupted" not in times, out
    assert max(map(float, times)) < 0.5, out


def test_ctrl_c_ends_an_endless_iterable_and_a_wait_for_another_thread() -> None:
    out = ends_well(
        """
import itertools, os, signal, threading, time
import numpy as np
import tamis

def interrupt(operation):
    sent = []
    def send():
        time.sleep(0.1)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        operation()
    except KeyboardInterrupt:
        print(time.monotonic() - sent[0])
    thread.join(20)

f = tamis.Growing()
interrupt(lambda: f.update(itertools.count()))
interrupt(lambda: f.contains(itertools.repeat("a")))
assert f.add("after") and "after" in f
""",
        seconds=60,
    )
    times = [float(line) for line in out.split()]
    assert len(times) == 2 and max(times) < 0.5, out


@pytest.mark.parametrize("operation", ["f |= g", "g |= f", "f == g", "g == f"])
def test_a_signal_handler_uses_a_filter_while_the_thread_waits_for_two(operation: str) -> None:
    # The handler would wait for ever if the waiting thread held one of the two filters.
    ends_well(
        f"""
import signal, threading
import numpy as np
import tamis
f, g = tamis.Bloom(1_000_000), tamis.Bloom(1_000_000)
items = np.arange(3_000_000)
started, handled = threading.Event(), 0
def handler(*_):
    global handled
    handled += 1
    g.add("from the handler")
    "x" in g
def busy(filter):
    while handled < 20:
        started.set()
        filter.contains(items)
        filter.update(items[:100_000])
import warnings
warnings.simplefilter("ignore")
signal.signal(signal.SIGALRM, handler)
threads = [threading.Thread(target=busy, args=(f,), daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
assert started.wait(20)
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
while handled < 20:
    {operation}
signal.setitimer(signal.ITIMER_REAL, 0)
for thread in threads:
    thread.join(20)
""",
        seconds=60,
    )


def test_other_threads_run_during_a_batch_of_a_long_list() -> None:
    ends_well(
        """
import threading, time
import tamis
items = [f"item {i}" for i in range(2_000_000)]
f = tamis.Bloom(len(items))
for operation in (f.update, f.contains, lambda items: f.update(tuple(items)), lambda items: f.update(set(items[:500_000]))):
    done, times = threading.Event(), []
    def watch():
        while not done.is_set():
            times.append(time.monotonic())
            time.sleep(0.001)
    watcher = threading.Thread(target=watch)
    watcher.start()
    operation(items)
    done.set()
    watcher.join(20)
    assert len(times) > 3, len(times)
"""
    )


def test_progress_of_lists_and_iterables_is_reported() -> None:
    f = tamis.DigestSet()
    calls: list[tuple[int, int | None]] = []
    report = lambda done, total: calls.append((done, total))  # noqa: E731
    f.insert(list(range(150_000)), progress=report)
    assert calls == [(65_536, 150_000), (131_072, 150_000), (150_000, 150_000)]
    calls.clear()
    f.update(iter(range(2_000)), progress=report)
    assert calls == [(1_024, None), (2_000, None)]
    items: list[object] = [*range(100_000), None]
    with pytest.raises(TypeError) as caught:
        f.update(items)
    assert caught.value.__notes__ == ["at least the first 65,536 items were processed before"]

    def broken() -> Iterator[int]:
        yield from range(5_000)
        raise OSError

    with pytest.raises(OSError) as broke:
        f.update(broken())
    assert broke.value.__notes__ == ["at least the first 4,096 items were processed before"]


def test_an_item_that_raises_stop_iteration_does_not_end_a_batch_without_an_error() -> None:
    class Broken:
        def __index__(self) -> int:
            raise StopIteration("broken")

    f = tamis.DigestSet()
    for form in (list, tuple, iter):
        for operation in (f.insert, f.update, f.contains):
            with pytest.raises(StopIteration, match="broken"):
                operation(form([1, Broken(), 2]))
    assert not f
