"""Measured false positive rates, and the warning of a filter that has passed its rate."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tamis

PROBES = 1_000_000
ABSENT = np.arange(2**40, 2**40 + PROBES)

FILTERS: dict[str, Callable[[int, float], tamis.Filter]] = {
    "split-block": lambda items, rate: tamis.Bloom(items, rate),
    "classic": lambda items, rate: tamis.Bloom(items, rate, kind="classic"),
    "parquet": lambda items, rate: tamis.Bloom(items, rate, kind="parquet"),
    "shared": lambda items, rate: tamis.SharedBloom(items, rate),
    "cuckoo-2": lambda items, rate: tamis.Cuckoo(items, rate),
    "cuckoo-4": lambda items, rate: tamis.Cuckoo(items, rate, bucket=4),
    "counting": lambda items, rate: tamis.Counting(items, rate),
    "growing": lambda items, rate: tamis.Growing(rate, items=items),
    "growing-small": lambda _, rate: tamis.Growing(rate, items=1),
    "window-items": lambda items, rate: tamis.Window(items, rate),
    "window-time": lambda items, rate: tamis.Window(items, rate, seconds=10, clock=False),
}


def most(rate: float, probes: int = PROBES, filters: int = 1) -> float:
    """Return a number of false positives that chance exceeds in one of 10⁹ runs.

    The bits of a small filter differ from filter to filter, which adds to the variance.
    """
    return probes * rate + 6 * math.sqrt(probes * rate / filters) + 6


@pytest.mark.parametrize("rate", [0.1, 0.01, 0.001, 1e-5])
@pytest.mark.parametrize("items", [1_000, 60_000])
@pytest.mark.parametrize("kind", FILTERS)
def test_a_filter_at_its_capacity_keeps_its_rate(kind: str, items: int, rate: float) -> None:
    f = FILTERS[kind](items, rate)
    inserted = np.arange(items)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f.update(inserted)
    assert f.contains(inserted).all()
    wrong = int(f.contains(ABSENT).sum())
    # A filter of few items has a rate that differs from the expected rate by its hashes.
    slack = 1.15 if items < 10_000 else 1.03
    assert wrong <= slack * most(rate), f"{wrong} of {PROBES} at a rate of {rate}"
    assert not f.is_saturated
    if kind != "growing-small":
        assert f.estimate_rate() <= 1.2 * rate
        assert 0.9 * items < f.estimate_items() < 1.1 * items


@pytest.mark.parametrize("rate", [0.01, 0.001])
@pytest.mark.parametrize("kind", ["split-block", "classic", "parquet", "counting"])
def test_a_filter_does_not_waste_bits(kind: str, rate: float) -> None:
    f = FILTERS[kind](60_000, rate)
    f.update(np.arange(60_000))
    wrong = int(f.contains(ABSENT).sum())
    # The size of a filter of Parquet is a power of two.
    assert wrong > most(rate) / (40 if kind == "parquet" else 2.5), wrong


def test_the_rate_of_text_and_of_bytes_equals_the_rate_of_integers() -> None:
    for rate in (0.01, 0.001):
        f = tamis.Bloom(50_000, rate)
        f.update([f"user:{i}" for i in range(25_000)])
        f.update([b"%d" % i for i in range(25_000)])
        absent = np.array([f"absent:{i}" for i in range(200_000)])
        assert int(f.contains(absent).sum()) <= 1.05 * most(rate, len(absent))


def test_a_secret_key_and_a_seed_change_the_false_positives() -> None:
    found = []
    for options in ({}, {"seed": 1}, {"key": bytes(16)}, {"key": b"x" * 16}):
        f = tamis.Bloom(10_000, 0.01, **options)
        f.update(np.arange(10_000))
        found.append(set(np.flatnonzero(f.contains(ABSENT[:100_000])).tolist()))
        assert len(found[-1]) <= most(0.01, 100_000)
    for i, one in enumerate(found):
        for two in found[i + 1 :]:
            assert len(one & two) < 100


def caught(action: Callable[[], object]) -> list[Any]:
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        action()
    return record


WARNS = ["split-block", "classic", "parquet", "shared", "counting"]


@pytest.mark.parametrize("kind", WARNS)
@pytest.mark.parametrize("way", ["add", "list", "numpy", "update", "dedup", "generator"])
def test_the_warning_comes_once_and_after_the_rate_is_passed(kind: str, way: str) -> None:
    items = 2_000
    f = FILTERS[kind](items, 0.01)
    first: list[int] = []
    for start in range(0, 20 * items, items // 4):
        part = range(start, start + items // 4)

        def insert(part: Any = part) -> None:
            match way:
                case "add":
                    for item in part:
                        f.add(item)
                case "list":
                    f.insert(list(part))
                case "numpy":
                    f.insert(np.array(part))
                case "update":
                    f.update(np.array(part))
                case "dedup":
                    list(f.dedup([list(part)]))
                case "generator":
                    f.update(item for item in part)

        record = caught(insert)
        if record:
            first.append(start + items // 4)
            assert [entry.category for entry in record] == [tamis.SaturatedWarning]
            assert "planned for 2000 items" in str(record[0].message)
            assert record[0].filename == __file__, "the warning names the line of the program"
            assert f.is_saturated
        elif not first:
            assert start + items // 4 <= items or f.estimate_rate() < 0.025
    assert len(first) == 1, "the warning comes exactly once"
    # A filter of Parquet has more bits than needed.
    assert items < first[0] <= (8 if kind == "parquet" else 2) * items


@pytest.mark.parametrize("kind", WARNS)
def test_the_warning_can_be_an_error_and_the_items_stay(kind: str) -> None:
    f = FILTERS[kind](1_000, 0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tamis.SaturatedWarning):
            f.update(range(20_000))
            f.update(range(20_000, 40_000))
        f.add(-1)
    assert f.contains(np.arange(1_024)).all() and -1 in f


def test_the_warning_comes_again_after_clear_and_for_a_copy() -> None:
    f = tamis.Bloom(1_000)
    with pytest.warns(tamis.SaturatedWarning):
        f.update(range(10_000))
    assert caught(lambda: f.update(range(10_000, 20_000))) == []
    copy = f.copy()
    assert len(caught(lambda: copy.update(range(20_000, 90_000)))) <= 1
    f.clear()
    assert caught(lambda: f.update(range(1_000))) == []
    with pytest.warns(tamis.SaturatedWarning):
        f.update(range(10_000))


def test_a_merge_that_passes_the_rate_warns_once() -> None:
    for create in (tamis.Bloom, tamis.SharedBloom):
        f = create(1_000)
        with pytest.warns(tamis.SaturatedWarning):
            for start in range(0, 8_000, 1_000):
                other = create(1_000)
                other.update(range(start, start + 1_000))
                f |= other
        assert caught(lambda f=f, other=other: f.__ior__(other)) == []  # type: ignore[misc]
        with pytest.warns(tamis.SaturatedWarning):
            assert (create(1_000) | f).is_saturated


def test_a_filter_from_a_file_warns_when_it_passes_its_rate(tmp_path: Any) -> None:
    f = tamis.Bloom(2_000)
    f.update(range(1_500))
    f.save(tmp_path / "f.tamis")
    for g in (tamis.Bloom.load(tmp_path / "f.tamis"), tamis.SharedBloom.load(tmp_path / "f.tamis")):
        assert caught(lambda g=g: g.update(range(2_000))) == []  # type: ignore[misc]
        with pytest.warns(tamis.SaturatedWarning):
            g.update(range(2_000, 6_000))


@pytest.mark.parametrize("kind", ["growing", "growing-small", "window-items"])
def test_a_filter_without_a_last_item_does_not_warn(kind: str) -> None:
    f = FILTERS[kind](1_000, 0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f.update(np.arange(100_000))
    assert not f.is_saturated


def test_exact_sets_do_not_warn_and_have_no_false_positives() -> None:
    for f in (tamis.DigestSet(), tamis.DigestSet(bits=64), tamis.IntSet()):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            f.update(np.arange(300_000))
        assert len(f) == 300_000 and not f.contains(ABSENT).any()
        assert f.info()["present_rate"] == 0.0 and not f.is_saturated


def test_a_full_cuckoo_filter_says_how_many_items_fit_and_stays_usable() -> None:
    f = tamis.Cuckoo(1_000, 0.01)
    with pytest.raises(tamis.FullError, match="item"):
        f.update(np.arange(100_000))
    inserted = int(f.info()["items"])
    assert inserted >= 1_000
    failures = 0
    for item in range(-200, 0):
        before = f.to_bytes()
        try:
            f.add(item)
        except tamis.FullError:
            failures += 1
            # Neither the bits nor the number of inserted items in the file has changed.
            assert f.to_bytes() == before
    assert failures > 100
    assert f.contains(np.arange(1_000)).all()
    for operation in (
        f.add,
        lambda item: f.insert([item]),
        lambda item: f.update([item]),
        f.add_copy,
    ):
        with pytest.raises(tamis.FullError):
            for i in range(100):
                operation(f"new {i}")
    f.remove(1)
    assert f.contains(np.arange(2, 1_000)).all()


def test_plans_tell_the_sizes_of_the_filters() -> None:
    for items, rate in [(1_000, 0.01), (100_000, 0.001), (5_000_000, 0.05)]:
        plans = tamis.plan(items, rate)
        assert plans.why and [plan.kind for plan in plans][0] == plans[0].kind
        kinds = {plan.kind: plan for plan in plans}
        for name in ("split-block", "classic", "parquet"):
            f = tamis.Bloom(items, rate, kind=name)  # type: ignore[arg-type]
            plan = kinds[name]
            assert (plan.size_bytes, plan.items) == (f.size_bytes, items)
            assert plan.rate <= rate * 1.001 and f.capacity == items and f.rate == rate
            assert math.isclose(plan.bits_per_item, 8 * plan.size_bytes / items, rel_tol=0.01)
        assert kinds["cuckoo"].size_bytes == tamis.Cuckoo(items, rate).size_bytes
        assert kinds["counting"].size_bytes == tamis.Counting(items, rate).size_bytes
        for plan in plans:
            created = eval(f"tamis.{plan.call}")
            assert created.info()["kind"] == plan.kind
            assert plan.kind == "growing" or created.size_bytes == plan.size_bytes
        assert (
            plans[0].kind in repr(plans)
            and "<- best" in repr(plans)
            and "<table>" in plans._repr_html_()
        )
