"""Batches in numpy arrays, `array.array` and `memoryview`."""

from __future__ import annotations

import array
import sys
from typing import Any

import numpy as np
import pytest
import tamis
from conftest import ALL_KINDS, Kind, each_kind

INTEGERS = "bBhHiIlLqQpP"


def of(array: Any) -> list[Any]:
    """Return the items of an array as Python objects."""
    return array.reshape(-1).tolist() if isinstance(array, np.ndarray) else list(array)


def check(array: Any) -> Any:
    """Insert and test an array, and compare the answers with those of single items."""
    items = of(array)
    f, g = tamis.DigestSet(), tamis.DigestSet()
    new, expected = f.insert(array), g.insert(items)
    assert of(new) == expected
    assert f == g and f.contains(items) == [True] * len(items)
    h = tamis.DigestSet()
    assert h.update(array) is None and h == g
    half = tamis.DigestSet()
    half.update(items[::2])
    for threads in (1, 2, 3, 4):
        found = half.contains(array, threads=threads)
        assert of(found) == [item in half for item in items]
    if isinstance(array, np.ndarray):
        assert type(new) is np.ndarray and new.dtype == np.bool_ and new.shape == array.shape
        assert type(found) is np.ndarray and found.dtype == np.bool_ and found.shape == array.shape
    else:
        assert type(new) is list and set(map(type, new)) <= {bool}
    return new


@pytest.mark.parametrize("order", "<>=")
@pytest.mark.parametrize("code", INTEGERS)
def test_each_integer_type_has_the_items_of_its_integers(code: str, order: str) -> None:
    dtype = np.dtype(code).newbyteorder(order)
    info = np.iinfo(dtype)
    values = [info.min, info.max, 0, 1, 5, 100, info.max // 2, info.min // 2, 5]
    check(np.array(values, dtype=dtype))
    f = tamis.DigestSet()
    f.update(np.array([5, 7], dtype=dtype))
    assert f.contains([5, 7, 6]) == [True, True, False]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("width", [1, 2, 3, 7, 100])
def test_text_of_a_fixed_width_has_the_items_of_its_strings(width: int, order: str) -> None:
    texts = ["", "a", "é", "😀", "a\0b", "abc", "\U0010ffff", "x" * 100]
    check(np.array(texts, dtype=f"{order}U{width}"))


@pytest.mark.parametrize("width", [1, 2, 3, 100])
def test_bytes_of_a_fixed_width_have_the_items_of_their_bytes(width: int) -> None:
    check(np.array([b"", b"a", b"a\0b", b"\xff", b"abc", b"x" * 100], dtype=f"S{width}"))


def test_text_of_no_width_is_empty_text() -> None:
    for dtype in ("U0", "S0"):
        for part in (np.zeros(5, dtype), np.zeros(5, dtype)[::2], np.zeros(5, dtype)[::-1]):
            f = tamis.DigestSet()
            assert f.insert(part).tolist() == [True] + [False] * (len(part) - 1)
            assert len(f) == 1 and "" in f


def test_a_surrogate_in_an_array_of_text_raises() -> None:
    f = tamis.Bloom(100)
    for unit in (0xD800, 0xDFFF, 0x110000, 0xFFFFFFFF):
        broken = np.array([97, unit], dtype=np.uint32).view("U1")
        with pytest.raises(ValueError, match="is not a character"):
            f.insert(broken)
    assert not f


def test_variable_strings_and_objects_have_their_items() -> None:
    texts = np.array(["", "a", "é", "x" * 1_000, "a"], dtype=np.dtypes.StringDType())
    check(texts)
    check(np.array(["a", 5, b"x", (1, "y"), "a"], dtype=object))
    check(np.empty(0, dtype=object))
    many = np.array([f"item {i % 70_000}" for i in range(140_000)], dtype=object)
    assert check(many).sum() == 70_000
    missing = np.array(["a", None], dtype=np.dtypes.StringDType(na_object=None))
    with pytest.raises(TypeError, match="NoneType is not an item"):
        tamis.Bloom(10).contains(missing)


def test_arrays_in_any_order_of_memory_have_their_items() -> None:
    base = np.arange(4_000, dtype=np.int32)
    for strided in (base[::2], base[::-1], base[5:5], base[3:-3:7], base[::-3]):
        check(strided)
    check(np.lib.stride_tricks.as_strided(base, (100,), (0,)))
    square = base.reshape(50, 80)
    for view in (square, square.T, square[::2, ::-3], np.asfortranarray(square), square[:, 3]):
        new = check(view)
        # The items are taken in the order of the rows.
        assert new.all()
    check(base.reshape(10, 20, 20))
    check(np.zeros((0, 3), dtype=np.int64))
    check(np.array(["ab", "cd", "ef"])[::-1])
    check(np.array(5))


def test_a_repeated_item_of_a_matrix_is_new_once_in_the_order_of_rows() -> None:
    f = tamis.DigestSet()
    assert f.insert(np.array([[1, 2], [2, 1]])).tolist() == [[True, True], [False, False]]


def test_a_read_only_array_is_read() -> None:
    items = np.arange(100)
    items.flags.writeable = False
    check(items)
    check(np.frombuffer(b"\1\2\3\4", dtype=np.uint8))


def test_a_subclass_of_an_array_is_read() -> None:
    class Own(np.ndarray):
        pass

    f = tamis.DigestSet()
    assert f.insert(np.arange(5).view(Own)).tolist() == [True] * 5
    assert f.contains(np.array([1, 9]).view(np.recarray)).tolist() == [True, False]


def test_a_field_of_a_structured_array_has_its_items() -> None:
    rows = np.array([(1, "a", 2.5), (2, "b", 0.5)], dtype=[("n", ">i2"), ("t", "U3"), ("x", "f8")])
    check(rows["n"])
    check(rows["t"])
    with pytest.raises(TypeError, match="convert it to integers, text or bytes"):
        tamis.Bloom(10).contains(rows)


UNSUPPORTED = [
    (np.array([1.5]), "floating-point numbers are not items.*astype"),
    (np.array([1.5], "f4"), "floating-point"),
    (np.array([1.5], "f2"), "floating-point"),
    (np.array([1.5], np.longdouble), "floating-point"),
    (np.array([1j]), "cannot be used as items"),
    (np.array([True]), "an array of booleans cannot be used as items"),
    (np.array([b"ab"], "V2"), "cannot be used as items"),
    (np.array(["2020-01-01"], "M8[D]"), r"datetime64\[D\] has no items.*view\('int64'\)"),
    (np.array([5], "m8[s]"), "timedelta64"),
    (np.ma.masked_array([1, 2], [True, False]), "masked array.*compressed"),
    (np.array([1, None], dtype=object), "NoneType is not an item"),
    (np.array([1, 2.5], dtype=object), "float is not an item"),
    (array.array("d", [1.5]), "floating-point"),
    (memoryview(b"ab").cast("c"), "cannot be used as items"),
    (memoryview(b"\1").cast("?"), "booleans"),
]


@pytest.mark.parametrize(("items", "match"), UNSUPPORTED, ids=[f"{i}" for i in range(15)])
def test_an_array_without_items_raises_and_names_the_way(items: Any, match: str) -> None:
    for f in (tamis.Bloom(10), tamis.IntSet(), tamis.DigestSet()):
        for operation in (f.contains, f.insert, f.update):
            with pytest.raises(TypeError, match=match):
                operation(items)
        assert not f


def test_the_ways_that_the_messages_name_work() -> None:
    days = np.array(["2020-01-01", "2020-01-02"], "M8[D]")
    f = tamis.Bloom(100)
    assert f.insert(days.view("int64")).all() and days[0].view("int64") in f
    assert f.insert(np.array([1.5, 2.5]).view("uint64")).all()
    assert f.insert(np.ma.masked_array([1, 2], [True, False]).compressed()).all()


@pytest.mark.parametrize("code", "bBhHiIlLqQ")
def test_an_array_of_the_module_array_has_its_items(code: str) -> None:
    items = array.array(code, [0, 1, 5, 100, 5])
    check(items)
    check(memoryview(items))
    check(memoryview(items)[::2])
    check(memoryview(items)[::-1])
    check(array.array(code))


def test_a_memoryview_of_bytes_is_a_batch_of_small_integers() -> None:
    check(memoryview(b"abca"))
    check(memoryview(bytearray(b"abca")))
    f = tamis.DigestSet()
    f.update(memoryview(b"a"))
    assert 97 in f and "a" not in f and memoryview(b"a") not in f


def test_characters_of_the_module_array_have_their_items() -> None:
    f = tamis.DigestSet()
    items = array.array("u", "ab😀a")
    assert f.insert(items) == [True, True, True, False]
    assert f.contains(["a", "b", "😀", "c"]) == [True, True, True, False]


def test_a_memoryview_of_two_dimensions_names_the_way() -> None:
    square = memoryview(b"abcd").cast("B", (2, 2))
    with pytest.raises(ValueError, match="one dimension: use array.ravel"):
        tamis.Bloom(10).contains(square)
    with pytest.raises((TypeError, BufferError)):
        tamis.Bloom(10).contains(memoryview(np.array(5)))


@each_kind(ALL_KINDS)
def test_all_kinds_give_the_answers_of_single_items(kind: Kind) -> None:
    rng = np.random.default_rng(5)
    f = kind.create()
    inserted = rng.integers(0, 2**62, 3_000)
    f.update(inserted)
    probes = np.concatenate([inserted[::3], rng.integers(0, 2**62, 100_000)])
    single = [item in f for item in probes.tolist()]
    for threads in (1, 2, 4):
        assert f.contains(probes, threads=threads).tolist() == single
    assert f.contains(probes.tolist()) == single
    assert f.contains(probes.astype(object)).tolist() == single
    assert f.contains(probes.astype(">u8")).tolist() == single
    assert sum(single) >= 1_000


@each_kind([kind for kind in ALL_KINDS if kind.name != "integers"])
def test_inserts_of_an_array_equal_inserts_of_single_items(kind: Kind) -> None:
    items = np.random.default_rng(6).integers(0, 1_500, 3_000)
    f, g = kind.create(), kind.create()
    assert f.insert(items).tolist() == [g.add(item) for item in items.tolist()]
    assert f == g
    h = kind.create()
    h.update(items)
    assert h == g


def test_threads_insert_into_a_shared_filter_as_one_thread_does() -> None:
    items = np.random.default_rng(7).integers(0, 2**62, 300_000)
    items = np.concatenate([items, items])
    alone = tamis.SharedBloom(300_000, 0.001)
    expected = alone.insert(items)
    for threads in (2, 3, 4):
        f = tamis.SharedBloom(300_000, 0.001)
        new = f.insert(items, threads=threads)
        assert f == alone
        # Which of two equal items is new depends on the threads; a false positive too.
        assert abs(int(new.sum()) - int(expected.sum())) < 300
        assert f.contains(items, threads=threads).all()


def test_the_rows_of_progress_grow_to_all_rows() -> None:
    items = np.arange(3_000_000)
    f = tamis.Bloom(3_000_000)
    for operation in (f.insert, f.contains, f.update):
        calls: list[tuple[int, int]] = []
        operation(items, progress=lambda done, total: calls.append((done, total)))
        done = [call[0] for call in calls]
        assert len(calls) >= 3, "the batch has several steps"
        assert done == sorted(set(done)) and done[-1] == len(items)
        assert {call[1] for call in calls} == {len(items)}
    calls = []
    f.contains(items.astype(object)[:100_000], progress=lambda *call: calls.append(call))
    assert calls == [(65_536, 100_000), (100_000, 100_000)]
    calls = []
    f.contains(np.empty(0, int), progress=lambda *call: calls.append(call))
    assert calls == []
    f.contains(array.array("i", [1, 2]), progress=lambda *call: calls.append(call))
    assert calls == [(2, 2)]


def test_an_exception_in_progress_ends_the_batch() -> None:
    items = np.arange(2_000_000)
    f = tamis.Growing()
    calls = []

    def fail(done: int, total: int | None) -> None:
        calls.append(done)
        raise ZeroDivisionError("from progress")

    for operation in (f.insert, f.contains, f.update):
        with pytest.raises(ZeroDivisionError, match="from progress"):
            operation(items, progress=fail)
    assert len(calls) == 3
    # The rows of the finished step are in the filter.
    assert f.contains(items[: calls[0]]).all()
    with pytest.raises(TypeError):
        f.contains(items, progress=5)  # type: ignore[arg-type]


def test_progress_may_use_the_filter() -> None:
    f = tamis.Growing()

    def use(done: int, total: int | None) -> None:
        f.add(-done)
        assert -done in f and f.copy() == f
        f.info()

    items = np.arange(500_000)
    f.insert(items, progress=use)
    assert f.contains(items).all() and -500_000 in f


def test_an_array_that_frees_itself_in_progress_is_still_read() -> None:
    box = [np.arange(1_000_000)]
    f = tamis.Growing()
    f.insert(box[0], progress=lambda *_: box.clear() if box else None)
    assert f.contains(np.arange(1_000_000)).all()


def test_an_array_of_characters_keeps_the_character_of_number_zero() -> None:
    characters = array.array("w" if sys.version_info >= (3, 13) else "u", "a\0c")
    f = tamis.DigestSet()
    assert f.insert(characters) == [True, True, True]
    assert all(f.contains(list(characters))) and "\0" in f and "" not in f
