"""Wrong arguments raise an exception of Python that names the argument."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tamis

CREATE: dict[str, Callable[..., Any]] = {
    "Bloom": tamis.Bloom,
    "classic": lambda *a, **k: tamis.Bloom(*a, kind="classic", **k),
    "parquet": lambda *a, **k: tamis.Bloom(*a, kind="parquet", **k),
    "SharedBloom": tamis.SharedBloom,
    "Cuckoo": tamis.Cuckoo,
    "Counting": tamis.Counting,
    "Window": tamis.Window,
    "Window of time": lambda *a, **k: tamis.Window(*a, seconds=5, **k),
    "Growing": lambda items, rate=0.01, **k: tamis.Growing(rate, items=items, **k),
}
each_class = pytest.mark.parametrize("name", CREATE)


@each_class
@pytest.mark.parametrize("items", [-1, 2**64, 2**70, -(2**70), 1.5, "5", None, math.nan, [5]])
def test_a_wrong_number_of_items_raises(name: str, items: Any) -> None:
    with pytest.raises((tamis.PlanError, TypeError), match="items must be"):
        CREATE[name](items)
    with pytest.raises((tamis.PlanError, OverflowError, TypeError)):
        tamis.plan(items, 0.01)


@each_class
@pytest.mark.parametrize("items", [2**63, 2**64 - 1, 2**60])
def test_a_huge_number_of_items_raises_and_does_not_crash(name: str, items: int) -> None:
    # A growing filter only reserves memory, so it may take the number.
    try:
        f = CREATE[name](items)
    except (tamis.PlanError, MemoryError) as error:
        assert str(error)
    else:
        assert name == "Growing" and f.add(1)


@each_class
@pytest.mark.parametrize("rate", [0, 1, -1, 2, 0.0, 1.0, -0.0, math.nan, math.inf, -math.inf])
def test_a_rate_that_is_no_probability_raises(name: str, rate: float) -> None:
    for items in (0, 1, 1_000):
        with pytest.raises(tamis.PlanError, match="rate|between"):
            CREATE[name](items, rate)
        with pytest.raises(ValueError):
            tamis.plan(items, rate)


@each_class
@pytest.mark.parametrize("rate", ["0.1", None, [], 1j])
def test_a_rate_of_another_type_raises(name: str, rate: Any) -> None:
    with pytest.raises(TypeError):
        CREATE[name](10, rate)


@each_class
@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e-18, 0.999999999, 1 - 2**-53])
def test_an_extreme_rate_gives_a_filter_or_an_error(name: str, rate: float) -> None:
    try:
        f = CREATE[name](10, rate)
    except (tamis.PlanError, MemoryError):
        return
    f.add("a")
    assert "a" in f
    f.info(), repr(f), f.to_bytes()


@each_class
def test_no_items_are_planned_as_one(name: str) -> None:
    f = CREATE[name](0)
    assert f.add("a") and "a" in f and f.info()["capacity"] in (0, 1, None)


@each_class
@pytest.mark.parametrize("length", [0, 1, 15, 17, 32, 1_000])
def test_a_key_of_another_length_raises(name: str, length: int) -> None:
    for create in (CREATE[name], lambda _, **k: tamis.DigestSet(**k)):
        with pytest.raises(ValueError, match=f"a key has 16 bytes, and this one has {length}"):
            create(10, key=bytes(length))


@each_class
@pytest.mark.parametrize("key", ["x" * 16, 5, [1] * 16, 1.5])
def test_a_key_that_is_not_bytes_raises(name: str, key: Any) -> None:
    for create in (CREATE[name], lambda _, **k: tamis.DigestSet(**k)):
        with pytest.raises((TypeError, ValueError)):
            create(10, key=key)


@each_class
def test_a_key_and_a_seed_exclude_each_other(name: str) -> None:
    for create in (CREATE[name], lambda _, **k: tamis.DigestSet(**k)):
        with pytest.raises(ValueError, match="a key or a seed, not both"):
            create(10, key=bytes(16), seed=1)
        create(10, key=secrets.token_bytes(16))
        for seed in (-1, 2**64, "x", 1.5):
            with pytest.raises((tamis.PlanError, OverflowError, TypeError)):
                create(10, seed=seed)
        create(10, seed=2**64 - 1)


@each_class
def test_an_unknown_option_raises(name: str) -> None:
    with pytest.raises(TypeError, match="nope"):
        CREATE[name](10, nope=1)
    with pytest.raises(TypeError):
        CREATE[name]()


def test_options_of_one_class_have_their_values() -> None:
    for kind in ("nope", "", "cuckoo-3", 5, None):
        with pytest.raises((ValueError, TypeError)):
            tamis.Bloom(10, kind=kind)  # type: ignore[arg-type]
    for bucket in (0, 1, 3, 5, 8, 2**31):
        with pytest.raises(ValueError, match="bucket must be 2 or 4, and not"):
            tamis.Cuckoo(10, bucket=bucket)  # type: ignore[arg-type]
    for bucket in (-1, 2**32, "2", 2.0):
        with pytest.raises((tamis.PlanError, OverflowError, TypeError)):
            tamis.Cuckoo(10, bucket=bucket)  # type: ignore[arg-type]
    for bits in (0, 32, 63, 256):
        with pytest.raises(ValueError, match="bits must be 64 or 128"):
            tamis.DigestSet(bits=bits)  # type: ignore[arg-type]
    for items in (-1, 2**64, "x"):
        with pytest.raises((tamis.PlanError, OverflowError, TypeError)):
            tamis.DigestSet(items=items)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        tamis.DigestSet(5)  # type: ignore[misc]
    with pytest.raises(TypeError):
        tamis.IntSet([1, 2])  # type: ignore[call-arg]
    f = tamis.DigestSet(items=2**40)
    assert f.add(1) or True


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, -math.inf, 1e16, 1e300])
def test_a_window_of_no_time_raises(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds must be above 0 and below 1e15"):
        tamis.Window(10, seconds=seconds)


def test_a_window_of_any_time_is_created() -> None:
    for seconds in (1e-9, 0.001, 1, np.float64(5), 1e14):
        f = tamis.Window(10, seconds=seconds)
        assert f.add("a")
        repr(f), f.info()
    for slices in (0, 2**32 - 1, 1_000_000):
        with pytest.raises(tamis.PlanError):
            tamis.Window(10, slices=slices)
    for slices in (-1, 2**32, 1.5, "x"):
        with pytest.raises((tamis.PlanError, OverflowError, TypeError)):
            tamis.Window(10, slices=slices)  # type: ignore[arg-type]


@pytest.mark.parametrize("now", [-1, -0.001, math.nan, math.inf, -math.inf, 1e16, 1e300])
def test_a_wrong_time_of_a_window_raises(now: float) -> None:
    f = tamis.Window(10, seconds=5, clock=False)
    with pytest.raises(ValueError, match="the time must be at least 0 and below 1e16 seconds"):
        f.advance(now)


def test_the_time_of_a_window_never_goes_back() -> None:
    f = tamis.Window(10, seconds=5, clock=False)
    f.advance(9.9e15)
    f.add("a")
    f.advance(0)
    assert "a" in f
    for wrong in ("5", None, 1j):
        with pytest.raises(TypeError):
            f.advance(wrong)  # type: ignore[arg-type]


BATCHES: list[Any] = [[1, 2], iter([1, 2]), np.arange(2), memoryview(b"ab")]


@pytest.mark.parametrize("threads", [0, -1, -(2**70)])
def test_a_number_of_threads_below_one_raises(threads: int) -> None:
    f = tamis.Bloom(10)
    for batch in BATCHES:
        for operation in (f.contains, f.insert, f.update):
            with pytest.raises(ValueError, match="threads must be at least 1, and not"):
                operation(batch, threads=threads)
        with pytest.raises(ValueError, match="threads must be at least 1, and not"):
            list(f.dedup([[1]], threads=threads))
    assert not f


@pytest.mark.parametrize("threads", ["2", None, 1.0, [1]])
def test_a_number_of_threads_of_another_type_raises(threads: Any) -> None:
    for batch in BATCHES:
        with pytest.raises(TypeError):
            tamis.Bloom(10).contains(batch, threads=threads)


@pytest.mark.parametrize("threads", [2**70, 2**31, 1_000, np.int64(2), True])
def test_any_other_number_of_threads_is_accepted(threads: int) -> None:
    f = tamis.SharedBloom(1_000_000)
    items = np.arange(300_000)
    assert f.insert(items, threads=threads).sum() > 299_000
    assert f.contains(items, threads=threads).all()
    assert f.contains([1, 2], threads=threads) == [True, True]


def test_methods_take_exactly_their_arguments() -> None:
    f: Any = tamis.Counting(10)
    for method in (f.add, f.remove, f.discard, f.count, f.add_copy, f.contains, f.insert, f.update):
        with pytest.raises(TypeError):
            method()
        with pytest.raises(TypeError):
            method("a", "b")
        with pytest.raises(TypeError):
            method(item="a")
        with pytest.raises(TypeError):
            method(["a"], nope=1)
    for method in (f.clear, f.copy, f.info, f.close, f.estimate_items):
        with pytest.raises(TypeError):
            method(1)
    with pytest.raises(TypeError):
        f.to_bytes(5)
    with pytest.raises(TypeError, match='"nope" is not a decode option'):
        f.to_bytes(nope=1)
    with pytest.raises(TypeError, match='"nope" is not a decode option'):
        tamis.from_bytes(b"", nope=1)
    with pytest.raises(TypeError, match='"nope" is not a decode option'):
        tamis.open("missing", nope=1)


def test_the_base_classes_and_the_extension_create_nothing_by_themselves() -> None:
    from tamis import _tamis

    for cls in (tamis.Filter, tamis.ForeignFilter, _tamis.Core, _tamis.Slots, _tamis.Handle):
        for arguments in ((), (5,), (10, 0.01), (None,), (object(),)):
            with pytest.raises(TypeError):
                cls(*arguments)
    handle = _tamis.create("split-block", 10, 0.01)
    _tamis.Core(handle)
    with pytest.raises(ValueError, match="the handle is empty"):
        _tamis.Core(handle)
    with pytest.raises(TypeError):
        tamis.Bloom.add(5, 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        tamis.Bloom.__contains__(tamis, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 5, "x", {1}, object(), [1]])
def test_only_filters_merge(wrong: Any) -> None:
    f = tamis.Bloom(10)
    for operation in (lambda: f | wrong, lambda: wrong | f, lambda: f.__ior__(wrong)):
        try:
            assert operation() is NotImplemented
        except TypeError as error:
            assert "unsupported operand" in str(error)
    with pytest.raises(TypeError, match="unsupported operand"):
        f |= wrong
    assert (f == wrong) is False and (f != wrong) is True


def test_filters_that_differ_do_not_merge() -> None:
    f = tamis.Bloom(1_000)
    f.add("a")
    before = f.copy()
    others = [
        tamis.Bloom(2_000),
        tamis.Bloom(1_000, 0.001),
        tamis.Bloom(1_000, seed=1),
        tamis.Bloom(1_000, key=bytes(16)),
        tamis.Bloom(1_000, kind="classic"),
        tamis.SharedBloom(1_000, seed=1),
        tamis.Cuckoo(1_000),
        tamis.Counting(1_000),
        tamis.Growing(),
        tamis.Window(1_000),
        tamis.DigestSet(),
        tamis.IntSet(),
        tamis.create("guava", items_planned=1_000, rate_planned=0.01, funnel="chars"),
    ]
    for other in others:
        for operation in (lambda: f.__ior__(other), lambda: f | other, lambda: other | f):
            with pytest.raises(tamis.MergeError):
                operation()
        with pytest.raises(tamis.MergeError):
            other |= f
    with pytest.raises(tamis.MergeError):
        tamis.DigestSet() | tamis.DigestSet(bits=64)
    with pytest.raises(tamis.MergeError):
        tamis.DigestSet() | tamis.DigestSet(seed=1)
    assert f == before
    shared = tamis.SharedBloom(1_000)
    shared.add("b")
    assert (f | shared).contains(["a", "b"]) == [True, True]
    assert type(f | shared) is tamis.Bloom and type(shared | f) is tamis.SharedBloom
    assert (shared | f).contains(["a", "b"]) == [True, True]
