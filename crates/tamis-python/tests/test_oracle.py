"""Any operations on a set agree with the same operations on Python's own containers."""

from __future__ import annotations

import collections
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tamis
from conftest import INT_SET, KINDS, Kind, each_kind
from hypothesis import given, settings
from hypothesis import strategies as st

SETTINGS = settings(
    derandomize=True, max_examples=40, deadline=None, database=None, stateful_step_count=20
)

# Few different items, so that items repeat.
integers = st.integers(-3, 60) | st.sampled_from([2**31, -(2**31), 2**63 - 1, -(2**63), 2**64 - 1])
texts = st.text(alphabet="ab\0é😀", max_size=3)
anything = integers | texts | st.binary(max_size=2) | st.tuples(integers, texts)


def stable(item: Any) -> bytes:
    """Return the bytes by which two items are equal, as `src/item.rs` documents them."""
    match item:
        case str():
            return item.encode()
        case bytes():
            return item
        case int():
            return (item % 2**64).to_bytes(8, "little")
    parts = b""
    for part in item:
        length = b"" if isinstance(part, int) else len(stable(part)).to_bytes(8, "little")
        parts += length + stable(part)
    return parts


def as_list(items: list[Any]) -> Any:
    return items


def as_generator(items: list[Any]) -> Any:
    return (item for item in items)


def as_numpy(items: list[Any]) -> Any:
    # A mixed list stays an array of Python objects.
    if items and all(isinstance(item, int) and abs(item) < 2**63 for item in items):
        return np.array(items, dtype=np.int64)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def as_arrow(items: list[Any]) -> Any:
    if all(isinstance(item, int) and -(2**63) <= item < 2**63 for item in items):
        return pa.array(items, pa.int64())
    if all(isinstance(item, str) for item in items):
        return pa.array(items, pa.string())
    if all(isinstance(item, bytes) for item in items):
        return pa.array(items, pa.binary())
    return items


FORMS = [as_list, as_generator, as_numpy, as_arrow]
WAYS = ["add", "insert", "update", "merge", "threads"]

operations = st.lists(
    st.tuples(st.sampled_from(WAYS), st.sampled_from(FORMS), st.lists(anything, max_size=30))
    | st.tuples(
        st.sampled_from(WAYS), st.sampled_from(FORMS), st.lists(integers | texts, max_size=30)
    )
    | st.tuples(st.sampled_from(["clear", "copy", "pickle", "bytes"]), st.none(), st.just([])),
    max_size=8,
)


def answers_of(array: Any) -> list[bool]:
    return array.to_pylist() if isinstance(array, pa.Array) else list(array)


def insert(f: tamis.Filter, kind: Kind, way: str, form: Any, items: list[Any]) -> list[bool] | None:
    """Insert items in one of the ways. Returns which were new, if the way tells it."""
    match way:
        case "add":
            return [f.add(item) for item in items]
        case "merge" if kind.merges and not kind.name.startswith("window"):
            other = f.copy()
            other.clear()
            other.update(form(items))
            f |= other
            return None
        case "update":
            f.update(form(items))
            return None
        case "threads" if kind.name == "shared":
            return answers_of(f.insert(form(items), threads=2))
    return answers_of(f.insert(form(items)))


@each_kind(KINDS)
@SETTINGS
@given(operations)
def test_a_set_agrees_with_a_set_of_python(kind: Kind, operations: Any) -> None:
    f, oracle, seen = kind.create(), set[bytes](), dict[bytes, Any]()
    for way, form, items in operations:
        match way:
            case "clear":
                f.clear()
                oracle.clear()
            case "copy":
                f = f.copy()
            case "pickle":
                f = pickle.loads(pickle.dumps(f))
            case "bytes" if kind.has_file:
                loaded = tamis.from_bytes(f.to_bytes())
                f = loaded if kind.name != "shared" else f
            case "bytes":
                pass
            case _:
                new = insert(f, kind, way, form, items)
                for i, item in enumerate(items):
                    seen[stable(item)] = item
                    is_new = stable(item) not in oracle
                    oracle.add(stable(item))
                    # A present item is never new. A new item is new, or a false positive.
                    if new is not None and (kind.is_exact or not is_new):
                        assert new[i] == is_new, (way, item)
        present = [item for item in seen.values() if stable(item) in oracle]
        assert f.contains(present) == [True] * len(present)
        everything = list(seen.values())
        answers = f.contains(everything)
        assert answers == [item in f for item in everything]
        for form in FORMS:
            assert answers_of(f.contains(form(everything))) == answers
        if kind.is_exact:
            assert answers == [stable(item) in oracle for item in everything]
            assert len(f) == len(oracle)  # type: ignore[arg-type]
        assert bool(f) == bool(oracle)


unsigned = st.integers(0, 50) | st.integers(2**16 - 2, 2**16 + 2) | st.integers(0, 2**64 - 1)
set_operations = st.lists(
    st.tuples(
        st.sampled_from(["add", "insert", "numpy", "update", "discard", "remove", "|=", "arrow"]),
        st.lists(unsigned, max_size=20),
    )
    | st.tuples(st.sampled_from(["clear", "copy", "pickle", "bytes"]), st.just([])),
    max_size=12,
)


@SETTINGS
@given(set_operations)
def test_an_int_set_is_a_set_of_integers(operations: Any) -> None:
    f, oracle = tamis.IntSet(), set[int]()
    for operation, items in operations:
        before = set(oracle)
        expected = [item not in before and item not in items[:i] for i, item in enumerate(items)]
        oracle.update(items if operation not in ("discard", "remove") else ())
        match operation:
            case "add":
                assert [f.add(item) for item in items] == expected
            case "insert":
                assert f.insert(items) == expected
            case "numpy":
                assert f.insert(np.array(items, np.uint64)).tolist() == expected
            case "arrow":
                assert f.insert(pa.array(items, pa.uint64())).to_pylist() == expected
            case "update":
                f.update(iter(items))
            case "|=":
                other = tamis.IntSet()
                other.update(items)
                f |= other
            case "discard":
                for item in items:
                    assert f.discard(item) == (item in oracle)
                    oracle.discard(item)
            case "remove":
                for item in items:
                    if item in oracle:
                        f.remove(item)
                        oracle.remove(item)
                    else:
                        with pytest.raises(KeyError):
                            f.remove(item)
            case "clear":
                f.clear()
                oracle.clear()
            case "copy":
                f = f.copy()
            case "pickle":
                f = pickle.loads(pickle.dumps(f))
            case "bytes":
                f = tamis.from_bytes(f.to_bytes())  # type: ignore[assignment]
        assert type(f) is tamis.IntSet and len(f) == len(oracle) and bool(f) == bool(oracle)
        probes = [*oracle, 0, 1, 51, 2**16, 2**64 - 1]
        assert f.contains(probes) == [item in oracle for item in probes]
        assert f.contains(np.array(probes, np.uint64)).tolist() == f.contains(probes)


counted = st.lists(
    st.tuples(
        st.sampled_from(["add_copy", "add", "remove", "discard", "count"]), st.integers(0, 8)
    ),
    max_size=60,
)


@pytest.mark.parametrize(
    ("create", "most"),
    [
        (lambda: tamis.Counting(1_000, 1e-6), 15),
        (lambda: tamis.Cuckoo(1_000, 1e-6, bucket=4), 4),
        (lambda: tamis.Cuckoo(1_000, 1e-6, bucket=2), 2),
    ],
    ids=["counting", "cuckoo-4", "cuckoo-2"],
)
@SETTINGS
@given(counted)
def test_a_counting_set_agrees_with_a_counter(create: Any, most: int, operations: Any) -> None:
    # At a rate of 1e-6, nine items have no false positives.
    f, oracle = create(), collections.Counter[int]()
    for operation, item in operations:
        match operation:
            case "add_copy" if oracle[item] < most:
                assert f.add_copy(item) == (oracle[item] == 0)
                oracle[item] += 1
            case "add" if oracle[item] == 0:
                assert f.add(item) is True
                oracle[item] += 1
            case "remove" if oracle[item]:
                # A counter that has reached its end does not know its count.
                if type(f) is tamis.Counting and oracle[item] == 15:
                    continue
                assert f.remove(item) is None
                oracle[item] -= 1
            case "remove" | "discard" if not oracle[item]:
                assert f.discard(item) is False
                with pytest.raises(KeyError, match=str(item)):
                    f.remove(item)
        assert (item in f) == (oracle[item] > 0)
        assert oracle[item] <= f.count(item) or oracle[item] == 15
        assert f.count(item) == oracle[item]
    assert f.contains(list(range(9))) == [oracle[item] > 0 for item in range(9)]


@pytest.mark.parametrize("refresh", [False, True])
@SETTINGS
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 70)), max_size=40))
def test_a_window_remembers_an_item_for_its_time_and_at_most_twice(
    refresh: bool, steps: Any
) -> None:
    f = tamis.Window(1_000, 1e-6, seconds=100, clock=False, refresh=refresh)
    inserted, now = dict[int, int](), 0
    f.advance(now)
    for item, pause in steps:
        now += pause
        f.advance(now)
        is_new = f.add(item)
        age = now - inserted.get(item, -1_000)
        assert is_new or age <= 200, "an item lives at most twice the time"
        assert not is_new or age >= 100, "an item lives at least the time"
        if is_new or refresh:
            inserted[item] = now
        for other, since in inserted.items():
            assert other in f or now - since >= 100
            assert other not in f or now - since <= 200


def test_a_window_of_items_remembers_the_last_items() -> None:
    f = tamis.Window(1_000, 0.001)
    for start in range(0, 20_000, 250):
        f.update(range(start, start + 250))
        last = range(max(0, start - 700), start + 250)
        # A new item that is a false positive is not stored.
        assert sum(f.contains(last)) >= 0.99 * len(last)
    assert sum(f.contains(range(10_000))) < 200


@each_kind([*KINDS, INT_SET])
def test_many_items_have_no_false_negative(kind: Kind) -> None:
    f = kind.create()
    items = np.random.default_rng(1).integers(0, 2**63, 4_000, dtype=np.int64)
    f.update(items[:1000].tolist())
    f.insert(items[1000:2000])
    f.update(pa.array(items[2000:3000]))
    for item in items[3000:].tolist():
        f.add(item)
    # A window of items forgets items after its capacity, which is 4000.
    assert f.contains(items).all()
    assert f.contains(items, threads=2).all()
    assert all(f.contains(items.tolist()))


def test_a_merge_into_an_empty_set_takes_linear_time(tmp_path: Path) -> None:
    # The digests of a set are in ascending order. Inserting 300,000 of them in this order passed
    # 10,000,000,000 slots.
    f = tamis.DigestSet()
    f.update(range(300_000))
    for g in (tamis.DigestSet(), tamis.DigestSet(items=10)):
        g |= f
        assert g == f
    with tamis.DigestFile(tmp_path / "f.state", key=bytes(16)) as h:
        g = tamis.DigestSet(key=bytes(16))
        g.update(range(300_000))
        h |= g
        assert h == g
    with tamis.DigestFile(tmp_path / "f.state") as h:
        assert len(h) == 300_000 and h == g
    with pytest.raises(tamis.MergeError, match="different keys or seeds"):
        f |= g
