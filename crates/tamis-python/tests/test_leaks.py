"""The operations take no memory that they do not give back."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tamis

PAGE = 4096


def resident() -> int:
    """Return the memory of the process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def growth(action: Callable[[], object], rounds: int) -> float:
    """Return how many bytes a round of an action adds to the memory.

    The first rounds fill the caches of the allocators, so only the second half is measured.
    """
    for _ in range(rounds // 2):
        action()
    gc.collect()
    before = resident()
    for _ in range(rounds):
        action()
    gc.collect()
    return (resident() - before) / rounds


f = tamis.Bloom(1_000)
counting = tamis.Counting(1_000)
exact = tamis.DigestSet()
window = tamis.Window(1_000, seconds=100)
shared = tamis.SharedBloom(1_000)
integers = tamis.IntSet()
guava = tamis.create("guava", items_planned=1_000, rate_planned=0.01, funnel="long")
ITEMS = [
    "text",
    "é😀" * 5,
    5,
    2**64 - 1,
    b"bytes" * 9,
    bytearray(b"a"),
    (1, "a", (2, b"b")),
    np.int32(7),
]
BIG = 2**70


class Raises:
    def __index__(self) -> int:
        raise ZeroDivisionError


def singles() -> None:
    for item in ITEMS:
        f.add(item)
        item in f
        exact.add(item)
        item in exact


def others() -> None:
    integers.add(5)
    5 in integers
    window.add("a")
    "a" in window
    shared.add("a")
    guava.add(7)
    7 in guava
    counting.add_copy("a")
    counting.count("a")
    counting.discard("a")


def failing() -> None:
    for item in (1.5, None, BIG, "\ud800", (1, None), (), Raises()):
        try:
            f.add(item)  # type: ignore[arg-type]
        except (TypeError, OverflowError, UnicodeEncodeError, ZeroDivisionError):
            pass
        try:
            item in f  # type: ignore[operator]
        except (TypeError, OverflowError, UnicodeEncodeError, ZeroDivisionError):
            pass
        try:
            f.contains([item])
        except (TypeError, OverflowError, UnicodeEncodeError, ZeroDivisionError):
            pass


def lists() -> None:
    f.contains(ITEMS)
    f.insert(iter(ITEMS))
    f.update(ITEMS)


NUMBERS = np.arange(100)
TEXTS = np.array(["a", "bc", "é"])
OBJECTS = np.array(ITEMS[:3], dtype=object)


def arrays() -> None:
    for batch in (NUMBERS, NUMBERS[::-2], TEXTS, OBJECTS, memoryview(b"abc")):
        f.contains(batch)
        f.insert(batch)
        f.update(batch)
    try:
        f.contains(np.array([1.5]))
    except TypeError:
        pass


ARROW = pa.array(["a", None, "b"])
DICTIONARY = ARROW.dictionary_encode()
TABLE = pa.table({"a": [1, 2, None], "b": ["x", "y", "z"]})
FLOATS = pa.array([1.5])


def arrow() -> None:
    for batch in (ARROW, DICTIONARY, TABLE, pa.chunked_array([ARROW])):
        f.contains(batch)
        f.update(batch)
    try:
        f.contains(FLOATS)
    except TypeError:
        pass


def encoded() -> None:
    for one in (f, counting, window, shared, integers, guava):
        data = one.to_bytes()
        if one is not guava:
            tamis.from_bytes(data)
    try:
        tamis.from_bytes(data[:-1], format="tamis")
    except tamis.FormatError:
        pass


def pickled() -> None:
    for one in (f, exact, window, guava, integers):
        pickle.loads(pickle.dumps(one))
        one.copy()


def reports() -> None:
    for one in (f, exact, window, guava, integers):
        one.info()
        repr(one)
        one == one.copy()
        bool(one)
    f | f


def created() -> None:
    tamis.Bloom(10_000)
    tamis.DigestSet(items=100).add(1)
    tamis.Growing().update(range(10))
    tamis.plan(1_000, 0.01)
    try:
        tamis.Bloom(10, 2.0)
    except tamis.PlanError:
        pass


def deduplicated() -> None:
    list(f.dedup([[1, 2], [2, 3]]))
    list(f.dedup([NUMBERS]))
    list(f.dedup([TABLE], "a"))


# An action has several operations, so that each runs up to a million times. A leaked object takes at
# least 16 bytes a round.
ROWS: list[tuple[Callable[[], object], int, float]] = [
    (singles, 60_000, 8),
    (others, 60_000, 8),
    (failing, 8_000, 30),
    (lists, 30_000, 8),
    (arrays, 5_000, 60),
    (arrow, 2_000, 200),
    (encoded, 4_000, 80),
    (pickled, 3_000, 100),
    (reports, 800, 300),
    (created, 5_000, 80),
    (deduplicated, 3_000, 150),
]


@pytest.mark.parametrize(("action", "rounds", "most"), ROWS, ids=[row[0].__name__ for row in ROWS])
@pytest.mark.filterwarnings("ignore::tamis.SaturatedWarning")
def test_an_operation_gives_its_memory_back(
    action: Callable[[], Any], rounds: int, most: float
) -> None:
    # Caches of numpy and pyarrow grow in steps, so one of three measurements is enough.
    found: list[float] = []
    for _ in range(3):
        found.append(growth(action, rounds))
        if found[-1] < most:
            return
    pytest.fail(f"{found} bytes for each round, and at most {most} are expected")


def test_opened_files_are_closed(tmp_path: Path) -> None:
    path = tmp_path / "f.tamis"
    tamis.Bloom(10_000).save(path)
    folder = Path("/proc/self/fd")

    def mappings() -> int:
        return Path("/proc/self/maps").read_text().count(str(path))

    before = len(list(folder.iterdir()))

    def opened() -> None:
        with tamis.open(path) as f:
            f.contains([1])
        tamis.open(path).copy()
        tamis.Bloom.load(path).save(path)
        try:
            tamis.open(path, format="guava")
        except tamis.FormatError:
            pass
        try:
            tamis.open(tmp_path / "missing")
        except FileNotFoundError:
            pass

    assert min(growth(opened, 60) for _ in range(3)) < 8_000
    gc.collect()
    assert len(list(folder.iterdir())) == before and mappings() == 0
    kept = tamis.open(path)
    assert mappings() == 1
    kept.close()
    assert mappings() == 0 and len(list(folder.iterdir())) == before
    handle = tamis.open(path)
    del handle
    gc.collect()
    assert mappings() == 0


def test_an_exception_in_a_batch_releases_the_array() -> None:
    data = bytearray(1_000_000)

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    for _ in range(10):
        with pytest.raises(ZeroDivisionError):
            f.contains(memoryview(data), progress=fail)
    gc.collect()
    data.append(1)


def test_references_are_counted_correctly() -> None:
    import sys

    items = [
        object.__new__(type("T", (), {"__index__": lambda self: 5})),
        "x" * 50,
        b"y" * 50,
        2**63,
        (1, "z" * 9),
    ]
    before = [sys.getrefcount(item) for item in items]
    arrow, numbers = pa.array([1, 2]), np.arange(5)
    more = [sys.getrefcount(arrow), sys.getrefcount(numbers)]
    for _ in range(100):
        for item in items:
            f.add(item)
            item in f
            exact.add(item)
        f.contains(items)
        f.update(iter(items))
        del item
        f.contains(arrow), f.contains(numbers)
        with pytest.raises(TypeError):
            f.contains([*items, 1.5])
    gc.collect()
    assert [sys.getrefcount(item) for item in items] == before
    assert [sys.getrefcount(arrow), sys.getrefcount(numbers)] == more
    filters = sys.getrefcount(f)
    for _ in range(100):
        f | f, f == f, repr(f), f.copy(), pickle.dumps(f)
    assert sys.getrefcount(f) == filters


@pytest.mark.parametrize(
    "item",
    [2**63, 2**64 - 1, 2**70, -(2**70), (1, 2**63), np.int32(5), 1.5, None, "\ud800", Raises()],
    ids=repr,
)
def test_a_loop_over_one_operation_collects_no_exceptions(item: Any) -> None:
    # No other call of the extension frees what `add` and `in` leave.
    def once() -> None:
        try:
            f.add(item)
        except (TypeError, OverflowError, UnicodeEncodeError, ZeroDivisionError):
            pass
        try:
            item in f
        except (TypeError, OverflowError, UnicodeEncodeError, ZeroDivisionError):
            pass

    assert min(growth(once, 20_000) for _ in range(2)) < 8
