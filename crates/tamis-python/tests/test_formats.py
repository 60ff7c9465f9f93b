"""Filters of other systems: each format that can be created is written and read again."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tamis

NAMES = [row.name for row in tamis.formats()]

# The options of the formats that need more than a number of items and a rate.
OPTIONS: dict[str, dict[str, Any]] = {
    "bip158": {"block_hash": "000000006c02c8ea6e4ff69651f7fcde348fb9d557a06e6957b65552002a7820"},
    "cassandra": {"format_version": "na"},
}
PLAN: dict[str, Any] = {"items_planned": 1_000, "rate_planned": 0.01}

FUNNELS: list[dict[str, Any]] = [
    {},
    {"funnel": "chars"},
    {"funnel": "long"},
    {"funnel": "orc-long"},
    {"funnel": "abloom-bytes"},
    {"funnel": "hash-integer"},
    {"funnel": "long-be"},
]

# The files of these formats are built from all items at once, so a filter that was read is full.
WRITTEN_ONCE = ("bip158", "leveldb")

INTEGERS = list(range(100))
TEXTS = [f"item {i}" for i in range(100)]


def options_of(name: str) -> dict[str, Any]:
    return {**PLAN, **OPTIONS.get(name, {})}


def create(name: str, **more: Any) -> Any:
    """Create a filter, or skip the test of a format that has no empty filters."""
    if name == "tamis":
        return tamis.Bloom(1_000)
    errors = []
    for funnel in FUNNELS:
        try:
            f = tamis.create(name, **options_of(name), **funnel, **more)
            f.contains([])
        except ValueError as error:
            errors.append(str(error))
            continue
        return f
    pytest.fail(f"{name}: {errors}")


def items_of(f: tamis.Filter) -> list[Any]:
    """Return a hundred items of the type that the filter takes."""
    for items in (
        TEXTS,
        INTEGERS,
        [f"{i:032x}" for i in range(100)],
        [f"{i:040x}" for i in range(100)],
    ):
        try:
            f.contains(items)
        except (TypeError, ValueError):
            continue
        return items
    pytest.fail("no items fit")


@pytest.mark.parametrize("name", NAMES)
def test_a_created_filter_is_saved_and_opened_with_equal_answers(name: str, tmp_path: Path) -> None:
    f = create(name)
    items = items_of(f)
    added = items[:50]
    for i, item in enumerate(added):
        if i % 2:
            f.add(item)
        else:
            f.insert([item])
    f.update(iter(added[:3]))
    answers = f.contains(items)
    assert answers[:50] == [True] * 50
    assert sum(answers[50:]) < 10 or f.rate is None
    assert [item in f for item in items] == answers
    array = np.array(items)
    assert f.contains(array).tolist() == answers and bool(f)
    path = tmp_path / f"f.{name}"
    f.save(path)
    assert path.read_bytes() == f.to_bytes()
    options = options_of(name)
    extras = f.__reduce__()[1][2]
    if extras.get("options", {}).get("funnel"):
        options["funnel"] = extras["options"]["funnel"]
    for g in (
        tamis.open(path, format=name, **options),
        tamis.from_bytes(f.to_bytes(), format=name, **options),
    ):
        assert type(g) is type(f)
        assert g.contains(items) == answers
        assert g == f or name in WRITTEN_ONCE
        assert g.to_bytes() == f.to_bytes()
    if type(f) is tamis.ForeignFilter:
        assert f.format == name and f.info()["format"] == name


@pytest.mark.parametrize("extension", ["roaring", "roaring64", "bin"])
@pytest.mark.parametrize("items", [[1, 5], [1, 2**32 - 1], [1, 2**40], []], ids=str)
def test_a_set_of_integers_is_opened_from_a_file_of_any_name(
    extension: str, items: list[int], tmp_path: Path
) -> None:
    f = tamis.IntSet()
    f.update(items)
    path = tmp_path / f"f.{extension}"
    f.save(path)
    options = {"format": "roaring"} if extension == "bin" else {}
    for g in (tamis.open(path, **options), tamis.IntSet.load(path, **options)):
        assert type(g) is tamis.IntSet and g == f


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_and_a_pickle_have_equal_answers_and_are_independent(name: str) -> None:
    f = create(name)
    items = items_of(f)
    f.update(items[:50])
    for g in (f.copy(), copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert type(g) is type(f) and g.contains(items) == f.contains(items)
        assert g == f or name in WRITTEN_ONCE
        before = f.to_bytes()
        try:
            g.update(items[50:])
        except tamis.FormatError:
            assert name in WRITTEN_ONCE
            continue
        assert g.contains(items[50:]) == [True] * 50 and f.to_bytes() == before


@pytest.mark.parametrize("name", NAMES)
def test_a_filter_reports_its_size(name: str) -> None:
    f = create(name)
    f.update(items_of(f)[:50])
    assert f.size_bytes > 0 and "size 0 B" not in repr(f)
    assert "-0" not in repr(create(name)) and f._repr_html_().startswith("<table>")
    assert f.info()["items"] > 0 or f.info()["items"] != f.info()["items"]


@pytest.mark.parametrize("name", NAMES)
def test_a_merge_has_the_items_of_both_or_raises(name: str) -> None:
    f, g = create(name), create(name)
    items = items_of(f)
    f.update(items[:30])
    g.update(items[30:60])
    try:
        merged = f | g
    except (tamis.MergeError, TypeError, tamis.FullError):
        f_before = f.to_bytes()
        with pytest.raises((tamis.MergeError, TypeError, tamis.FullError)):
            f |= g
        assert f.to_bytes() == f_before
        return
    assert merged.contains(items[:60]) == [True] * 60 and type(merged) is type(f)
    f |= g
    assert f == merged


def test_a_missing_option_is_named() -> None:
    with pytest.raises(ValueError, match="guava needs the .*items_planned=..."):
        tamis.create("guava")
    with pytest.raises(ValueError, match="rate_planned=..."):
        tamis.create("guava", items_planned=10)
    with pytest.raises(ValueError, match="bip158 needs .*block_hash=..."):
        tamis.create("bip158", **PLAN)
    with pytest.raises(ValueError, match="format_version=..."):
        tamis.create("cassandra", **PLAN)
    f = tamis.create("guava", **PLAN)
    for operation in (lambda: f.add("a"), lambda: "a" in f, lambda: f.contains([1])):
        with pytest.raises(ValueError, match="funnel="):
            operation()


WRONG: list[tuple[dict[str, Any], Any, str]] = [
    ({"funnel": "nope"}, ValueError, '"nope" is not a funnel: bytes'),
    ({"funnel": "text"}, ValueError, 'the funnel "text" needs a charset'),
    ({"funnel": "text", "charset": "x"}, ValueError, '"x" is not a charset: UTF-8'),
    ({"funnel": 5}, TypeError, "str"),
    ({"nope": 1}, TypeError, '"nope" is not a decode option: items_planned'),
    ({"rate_planned": 0.0}, ValueError, "between 0 and 1"),
    ({"rate_planned": 1.0}, ValueError, "between 0 and 1"),
    ({"rate_planned": -1.0}, ValueError, "between 0 and 1"),
    ({"rate_planned": float("nan")}, ValueError, "between 0 and 1"),
    ({"rate_planned": float("inf")}, ValueError, "between 0 and 1"),
    ({"rate_planned": "x"}, TypeError, "float|real"),
    ({"items_planned": -1}, OverflowError, "int"),
    ({"items_planned": 2**64}, OverflowError, "int"),
    ({"items_planned": 1.5}, TypeError, "int"),
    ({"items_planned": 2**63}, (tamis.PlanError, MemoryError), ""),
    ({"block_hash": "xyz"}, ValueError, ""),
    ({"key": 5}, TypeError, ""),
    ({"union": "yes"}, TypeError, "bool"),
]


@pytest.mark.parametrize(("options", "error", "match"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_option_raises(options: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match or None):
        tamis.create("guava", **{**PLAN, **options})
    errors = (*(error if isinstance(error, tuple) else (error,)), tamis.FormatError)
    with pytest.raises(errors):
        tamis.from_bytes(b"\x89", format="guava", **{**PLAN, **options})


def test_an_unknown_format_raises_and_lists_all() -> None:
    for operation in (
        lambda: tamis.create("nope"),
        lambda: tamis.from_bytes(b"", format="nope"),
        lambda: tamis.Bloom(10).to_bytes("nope"),
        lambda: tamis.open("missing", format="nope"),
    ):
        with pytest.raises(ValueError, match='"nope" is not a format: tamis, guava'):
            operation()


def test_the_items_of_a_funnel_have_its_type() -> None:
    numbers = tamis.create("guava", **PLAN, funnel="long")
    assert numbers.add(7) and 7 in numbers and "7" in numbers
    assert numbers.add(-(2**63)) and numbers.contains(np.array([7, 8])).tolist() == [True, False]
    for wrong in (2**63, "x", b"7", (7,), 7.5):
        with pytest.raises((TypeError, ValueError)):
            numbers.add(wrong)
    texts = tamis.create("guava", **PLAN, funnel="chars")
    assert texts.add("é") and "é" in texts
    with pytest.raises(TypeError, match="give a str"):
        texts.add(7)
    small = tamis.create("guava", **PLAN, funnel="int")
    assert small.add(2**31 - 1)
    with pytest.raises(ValueError):
        small.add(2**31)
    raw = tamis.create("guava", **PLAN, funnel="bytes")
    assert raw.add(b"\xff\0") and b"\xff\0" in raw and raw.add("a") and b"a" in raw
    gbk = tamis.create("guava", **PLAN, funnel="text", charset="GBK")
    assert gbk.add("名字") and "名字" in gbk
    # Java writes a question mark for a character outside of the charset.
    ascii = tamis.create("guava", **PLAN, funnel="text", charset="US-ASCII")
    assert ascii.add("é") and "?" in ascii and "x" not in ascii


def test_a_filter_of_another_system_cannot_be_cleared_or_counted() -> None:
    f = tamis.create("guava", **PLAN, funnel="chars")
    f.add("a")
    with pytest.raises(TypeError, match="cannot be cleared"):
        f.clear()
    with pytest.raises(TypeError):
        len(f)  # type: ignore[arg-type]
    assert "a" in f and not hasattr(f, "remove") and not hasattr(f, "count")


def test_a_file_is_recognised_by_its_bytes_or_its_name(tmp_path: Path) -> None:
    found = 0
    for row in tamis.formats():
        try:
            f = tamis.create(row.name, **options_of(row.name))
            data = f.to_bytes()
        except (ValueError, tamis.TamisError):
            continue
        for extension in row.extensions:
            path = tmp_path / f"f.{extension}"
            path.write_bytes(data)
            try:
                g = tamis.open(path, **options_of(row.name))
            except (tamis.FormatError, ValueError) as error:
                assert str(path) in str(error) or "format" in str(error)
                continue
            found += getattr(g, "format", row.name) == row.name
    assert found >= 15


def test_a_format_of_one_rule_is_converted_into_another(tmp_path: Path) -> None:
    f = tamis.create("bits-and-blooms", **PLAN, funnel="bytes")
    f.update(TEXTS)
    f.save(tmp_path / "f.gobloom")
    target = tmp_path / "f.json"
    tamis.convert(tmp_path / "f.gobloom", target, to="bits-and-blooms-json")
    g = tamis.open(target, format="bits-and-blooms-json", funnel="bytes")
    assert g.contains(TEXTS) == [True] * 100
    ids = tamis.IntSet()
    ids.update([1, 5, 100])
    ids.save(tmp_path / "f.roaring")
    tamis.convert(tmp_path / "f.roaring", tmp_path / "f.bits", to="java-bitmap")
    bits = tamis.open(tmp_path / "f.bits", format="java-bitmap")
    assert bits.contains([0, 1, 5, 99, 100]) == [False, True, True, False, True]


def test_a_filter_keeps_the_options_with_which_its_file_was_opened(tmp_path: Path) -> None:
    f = tamis.create("cassandra", **PLAN, format_version="na", funnel="bytes")
    f.update(TEXTS[:50])
    path = tmp_path / "na-1-big-Filter.db"
    f.save(path)
    with pytest.raises(ValueError, match="Filter.db: .*format_version=..."):
        tamis.open(path, funnel="bytes")
    g = tamis.open(path, funnel="bytes", format_version="na")
    assert g.contains(TEXTS[:50]) == [True] * 50
    for h in (g.copy(), pickle.loads(pickle.dumps(g))):
        assert h == g and h.contains(TEXTS) == g.contains(TEXTS)
    assert g.to_bytes() == path.read_bytes()
