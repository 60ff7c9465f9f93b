"""Threads use one filter, and the arrays of a batch, at the same time."""

from __future__ import annotations

import array
import pickle
import threading
from typing import Any

import numpy as np
import pytest
import tamis
from conftest import (
    ALL_KINDS,
    Kind,
    Thread,
    each_kind,
    for_a_while,
    kinds,
    side_by_side,
    wait_until,
)

ITEMS = np.arange(200_000)


def create(kind: Kind) -> tamis.Filter:
    return next(row for row in [*kinds(300_000), kind] if row.name == kind.name).create()


def test_exactly_one_of_several_threads_sees_an_item_as_new() -> None:
    f = tamis.SharedBloom(200_000, 1e-9)
    answers: list[Any] = [None] * 4
    barrier = threading.Barrier(4)

    def insert(i: int) -> None:
        barrier.wait(20)
        answers[i] = f.insert(ITEMS) if i % 2 else np.array([f.add(item) for item in range(50_000)])

    side_by_side(*[lambda i=i: insert(i) for i in range(4)])  # type: ignore[misc]
    new = sum(int(answer.sum()) for answer in answers)
    assert new == len(ITEMS)


@each_kind(ALL_KINDS)
def test_threads_that_insert_lose_no_item(kind: Kind) -> None:
    f = create(kind)
    parts = np.split(ITEMS[:120_000], 4)

    def insert(i: int) -> None:
        match i:
            case 0:
                f.insert(parts[0])
            case 1:
                f.update(parts[1].tolist())
            case 2:
                for item in parts[2].tolist():
                    f.add(item)
            case 3:
                for part in np.split(parts[3], 10):
                    f.insert(part, threads=2)

    side_by_side(*[lambda i=i: insert(i) for i in range(4)])  # type: ignore[misc]
    assert f.contains(ITEMS[:120_000]).all()


@each_kind(ALL_KINDS)
def test_all_operations_run_beside_each_other(kind: Kind) -> None:
    f, other = create(kind), create(kind)
    other.update(ITEMS[:5_000])
    f.update(ITEMS[5_000:10_000])

    def merge() -> None:
        if kind.merges:
            f.__ior__(other)

    actions = [
        lambda: f.contains(ITEMS[:50_000]),
        lambda: f.contains(ITEMS[:2_000].tolist()),
        lambda: [item in f for item in range(500)],
        lambda: f.update(ITEMS[:20_000]),
        lambda: [f.add(item) for item in range(500)],
        merge,
        f.copy,
        f.clear,
        lambda: pickle.loads(pickle.dumps(f)),
        f.info,
        lambda: repr(f),
        lambda: f == other,
        lambda: bool(f),
        (lambda: f.to_bytes()) if kind.has_file else f.copy,
    ]
    side_by_side(*[for_a_while(action, 0.3) for action in actions])
    f.clear()
    f.update(ITEMS[:1_000])
    assert f.contains(ITEMS[:1_000]).all()


@pytest.mark.filterwarnings("ignore::tamis.SaturatedWarning")
def test_two_filters_are_merged_into_each_other_and_compared_without_a_deadlock() -> None:
    a, b = tamis.Bloom(100_000), tamis.Bloom(100_000)
    a.update(ITEMS[:1_000])
    b.update(ITEMS[1_000:2_000])
    actions = [
        lambda: a.__ior__(b),
        lambda: b.__ior__(a),
        lambda: a == b,
        lambda: b == a,
        lambda: a.update(ITEMS[:9_000]),
        lambda: b.update(ITEMS[:9_000]),
        lambda: a.__ior__(a),
        lambda: a | b,
        lambda: b | a,
    ]
    side_by_side(*[for_a_while(action, 1.0) for action in actions])
    assert a.contains(ITEMS[:2_000]).all() and b.contains(ITEMS[:2_000]).all()


@pytest.mark.filterwarnings("ignore::tamis.SaturatedWarning")
def test_comparisons_in_both_orders_end_although_writers_wait() -> None:
    a, b = tamis.Bloom(2_000_000), tamis.Bloom(2_000_000)
    batch = np.arange(50_000)
    actions = [
        *[lambda: a == b] * 3,
        *[lambda: b == a] * 3,
        *[lambda: a.update(batch)] * 2,
        *[lambda: b.update(batch)] * 2,
    ]
    side_by_side(*[for_a_while(action, 1.5) for action in actions])
    assert a == b


def test_a_lookup_runs_beside_a_long_lookup_and_an_insert_waits() -> None:
    f = tamis.Bloom(5_000_000)
    steps, inserted = [], []

    def lookups() -> None:
        f.contains(np.arange(8_000_000), progress=lambda done, _: steps.append(done))

    thread = Thread(lookups, "a long batch")
    thread.start()
    wait_until(lambda: bool(steps), "the first step")
    assert 5 not in f
    inserted.append(f.add(5))
    assert 5 in f and inserted == [True]
    thread.finish()


def test_an_array_that_changes_meanwhile_gives_answers_without_a_crash() -> None:
    items = np.arange(400_000)
    texts = np.array([f"{i:06}" for i in range(100_000)])
    objects = np.array([f"{i:06}" for i in range(20_000)], dtype=object)
    f = tamis.Growing(0.01, items=1_000_000)
    end = threading.Event()

    def change() -> None:
        rng = np.random.default_rng(9)
        while not end.is_set():
            items[rng.integers(0, len(items), 1_000)] = rng.integers(0, 2**62)
            texts[rng.integers(0, len(texts), 100)] = "é"
            # Bytes that are no UTF-32 are an error, and not a crash.
            texts.view(np.uint32)[rng.integers(0, len(texts), 2)] = 0xFFFFFFFF
            objects[rng.integers(0, len(objects), 100)] = [None, "a", 5, b"x", 1.5][rng.integers(5)]

    thread = Thread(change, "changing the arrays")
    thread.start()
    try:
        for _ in range(5):
            assert f.contains(items, threads=2).shape == items.shape
            f.insert(items)
            for batch in (texts, objects, texts[::-2]):
                try:
                    f.insert(batch)
                except (TypeError, ValueError) as error:
                    assert "character" in str(error) or "item" in str(error)
    finally:
        end.set()
        thread.finish()


@pytest.mark.parametrize("kind", ["bytearray", "array"])
def test_an_array_cannot_be_resized_while_a_batch_reads_it(kind: str) -> None:
    data: Any = bytearray(4_000_000) if kind == "bytearray" else array.array("i", bytes(4_000_000))
    batch = memoryview(data) if kind == "bytearray" else data
    f = tamis.Bloom(1_000)
    errors: list[BaseException] = []

    def resize(*_: object) -> None:
        with pytest.raises(BufferError):
            data.extend(b"1234" if kind == "bytearray" else [1, 2])
        with pytest.raises(BufferError):
            data.pop()
        errors.append(BufferError())

    f.contains(batch, progress=resize)
    assert errors
    if kind == "bytearray":
        batch.release()
    data.append(1)


def test_a_list_that_changes_while_it_is_inserted_does_not_crash() -> None:
    f = tamis.DigestSet()
    items: list[Any] = list(range(5_000))

    class Clears:
        def __index__(self) -> int:
            items.clear()
            return 1

    items[100] = Clears()
    f.update(items)
    assert f.contains(list(range(100))) == [True] * 100 and 4_999 not in f
    grows: list[Any] = [0]

    class Grows:
        def __index__(self) -> int:
            if len(grows) < 3_000:
                grows.append(Grows())
            return len(grows)

    grows.append(Grows())
    f.update(grows)
    assert 3 in f


def test_an_iterable_may_use_the_filter_that_inserts_it() -> None:
    f = tamis.DigestSet()

    def items() -> Any:
        for i in range(5_000):
            f.add(("inner", i))
            if i % 1_000 == 0:
                f.copy()
                assert f == f.copy() and f.contains([("inner", i)]) == [True]
                f.update([("list", i)])
            yield i

    assert all(f.insert(items()))
    assert len(f) == 10_005

    def clears() -> Any:
        yield from range(2_000)
        f.clear()
        yield 7

    f.update(clears())
    assert 7 in f and 0 not in f


def test_an_exception_half_way_keeps_the_whole_chunks_before() -> None:
    f = tamis.DigestSet()

    def items(number: int) -> Any:
        yield from range(number)
        raise ZeroDivisionError("half way")

    for operation in (f.update, f.insert, f.contains):
        with pytest.raises(ZeroDivisionError, match="half way"):
            operation(items(3_000))
    # Items are inserted in chunks of 1024.
    assert len(f) == 2_048 and all(f.contains(range(2_048)))
    assert f.add(-1) and -1 in f


def test_a_filter_is_merged_into_itself() -> None:
    for kind in ALL_KINDS:
        if not kind.merges:
            continue
        f = kind.create()
        f.update([1, 2, 3])
        before = f.copy()
        f |= f
        assert f.contains([1, 2, 3]) == [True] * 3, kind.name
        if kind.name not in ("counting", "cuckoo"):
            assert f == before, kind.name


def test_threads_that_close_a_mapping_end_its_lookups(tmp_path: Any) -> None:
    f = tamis.Bloom(100_000)
    f.update(ITEMS[:100_000])
    f.save(tmp_path / "f.tamis")
    for _ in range(20):
        mapped = tamis.open(tmp_path / "f.tamis")
        started = threading.Event()

        def lookups(mapped: tamis.Filter = mapped, started: Any = started) -> None:
            with pytest.raises(tamis.ClosedError):
                while True:
                    assert mapped.contains(ITEMS[:20_000]).all()
                    assert 5 in mapped
                    started.set()

        threads = [Thread(lookups, "lookups in a mapping") for _ in range(2)]
        for thread in threads:
            thread.start()
        assert started.wait(20), "no lookup within 20 s"
        mapped.close()
        for thread in threads:
            thread.finish()
