"""The table in `src/item.rs`: which objects are items, and which items are equal."""

from __future__ import annotations

import array
import datetime
import decimal
import enum
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tamis
from conftest import KINDS, Kind, each_kind

UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")


class Text(str):
    pass


class Raw(bytes):
    pass


class Number(int):
    def __index__(self) -> int:
        return 99


class Color(enum.IntEnum):
    RED = 5


class Index:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __index__(self) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


class OwnUUID(uuid.UUID):
    pass


class Pair(tuple[Any, ...]):
    pass


def integer(value: int) -> bytes:
    return (value % 2**64).to_bytes(8, "little")


def sized(value: bytes) -> bytes:
    return integer(len(value)) + value


# Each row is an item and its documented bytes.
ROWS: list[tuple[Any, bytes]] = [
    ("", b""),
    ("a", b"a"),
    ("é😀", "é😀".encode()),
    ("a\0b", b"a\0b"),
    ("\0", b"\0"),
    ("x" * 100_000, b"x" * 100_000),
    (Text("a"), b"a"),
    (np.str_("a"), b"a"),
    (b"", b""),
    (b"a\0", b"a\0"),
    (Raw(b"a"), b"a"),
    (np.bytes_(b"a"), b"a"),
    (bytearray(b"ab"), b"ab"),
    (bytearray(), b""),
    (memoryview(b"ab"), b"ab"),
    (memoryview(b"abcdef")[::2], b"ace"),
    (memoryview(b"abc")[::-1], b"cba"),
    (memoryview(b"abcd").cast("B", (2, 2)), b"abcd"),
    (memoryview(array.array("b", [1, -1])), b"\x01\xff"),
    (0, integer(0)),
    (5, integer(5)),
    (-1, integer(-1)),
    (2**63 - 1, integer(2**63 - 1)),
    (2**63, integer(2**63)),
    (2**64 - 1, b"\xff" * 8),
    (-(2**63), integer(2**63)),
    (True, integer(1)),
    (False, integer(0)),
    (Number(5), integer(5)),
    (Color.RED, integer(5)),
    (Index(5), integer(5)),
    (Index(-5), integer(-5)),
    (Index(True), integer(1)),
    (np.int8(-5), integer(-5)),
    (np.uint8(255), integer(255)),
    (np.int32(5), integer(5)),
    (np.uint64(2**64 - 1), b"\xff" * 8),
    (np.longlong(-7), integer(-7)),
    (UUID, UUID.bytes),
    (OwnUUID(UUID.hex), UUID.bytes),
    ((5,), integer(5)),
    ((5, -6), integer(5) + integer(-6)),
    (("a",), sized(b"a")),
    (("", b""), sized(b"") + sized(b"")),
    ((1, "ab", UUID), integer(1) + sized(b"ab") + UUID.bytes),
    ((1, (2, 3)), integer(1) + integer(2) + integer(3)),
    ((1, (2, "a")), integer(1) + sized(integer(2) + sized(b"a"))),
    ((np.int32(5), np.str_("a")), integer(5) + sized(b"a")),
    ((True, bytearray(b"a"), memoryview(b"b")), integer(1) + sized(b"a") + sized(b"b")),
    (Pair((5, "a")), integer(5) + sized(b"a")),
]


@pytest.mark.parametrize(("item", "expected"), ROWS, ids=[repr(row)[:40] for row, _ in ROWS])
def test_an_item_is_its_documented_bytes(item: Any, expected: bytes) -> None:
    f = tamis.DigestSet()
    assert f.add(expected) is True
    assert item in f and f.add(item) is False
    assert f.contains([item]) == [True] and f.insert(iter([item])) == [False]
    other = tamis.DigestSet()
    assert other.add(item) is True
    assert expected in other and expected + b"\0" not in other and len(other) == 1


@each_kind(KINDS)
def test_all_kinds_hold_all_items(kind: Kind) -> None:
    f = kind.create()
    for item, expected in ROWS:
        f.add(item)
        assert item in f and expected in f, item
    g = kind.create()
    g.update([item for item, _ in ROWS])
    assert all(g.contains([expected for _, expected in ROWS]))
    # A window of items counts an item that it has seen as no new item.
    assert g == f or kind.name == "cuckoo"


def test_equal_items_of_all_types_are_one_item() -> None:
    for one in [5, np.int32(5), np.uint8(5), (5,), Index(5), integer(5), Color.RED]:
        for batch in [
            np.array([5]),
            np.array([5], "u1"),
            np.array([5], ">i4"),
            pa.array([5]),
            pa.array([5], pa.uint8()),
            [5],
            array.array("h", [5]),
        ]:
            f = tamis.DigestSet()
            f.update(batch)
            assert one in f, (one, batch)
            f = tamis.DigestSet()
            f.add(one)
            assert list(f.contains(batch))[0], (one, batch)


def test_tuples_with_other_parts_are_other_items() -> None:
    items = [("ab", "c"), ("a", "bc"), ("abc",), ("", "abc"), ("abc", ""), "abc", (("ab", "c"),)]
    f = tamis.DigestSet()
    assert all(f.insert(items)) and len(f) == len(items)


def nested(levels: int) -> Any:
    item: Any = "a"
    for _ in range(levels):
        item = (item,)
    return item


def test_a_tuple_has_at_most_32_levels() -> None:
    f = tamis.DigestSet()
    assert f.add(nested(32)) and nested(32) in f and nested(31) not in f
    for levels in (33, 100, 100_000):
        with pytest.raises(TypeError, match="at most 32 levels"):
            f.add(nested(levels))


WRONG: list[tuple[Any, type[Exception], str]] = [
    (1.0, TypeError, "float is not an item.*struct.pack"),
    (float("nan"), TypeError, "float is not an item"),
    (np.float64("nan"), TypeError, "numpy.float64 is not an item"),
    (np.float32(1), TypeError, "numpy.float32 is not an item"),
    (1j, TypeError, "complex is not an item"),
    (None, TypeError, "NoneType is not an item: leave None out"),
    (..., TypeError, "ellipsis is not an item"),
    (NotImplemented, TypeError, "is not an item"),
    ([1], TypeError, "list is not an item: use f.contains"),
    ({1}, TypeError, "set is not an item: use f.contains"),
    ({}, TypeError, "dict is not an item: insert what identifies it"),
    ((), TypeError, "an empty tuple is not an item"),
    ((1, ()), TypeError, "an empty tuple is not an item"),
    ((1, None), TypeError, "NoneType is not an item"),
    ((1, [2]), TypeError, "list is not an item"),
    (object(), TypeError, "object is not an item: insert a str"),
    (int, TypeError, "type is not an item"),
    (np.True_, TypeError, "numpy.bool is not an item"),
    (np.array([5]), TypeError, "numpy.ndarray is not an item: use f.contains"),
    (np.array(5), TypeError, "numpy.ndarray is not an item"),
    (np.datetime64("2020-01-01"), TypeError, "datetime64 is not an item"),
    (np.void(b"ab"), TypeError, "numpy.void is not an item"),
    (pa.scalar("a"), TypeError, "Scalar is not an item"),
    (datetime.date(2020, 1, 1), TypeError, "datetime.date is not an item.*isoformat"),
    (datetime.datetime(2020, 1, 1), TypeError, "isoformat"),
    (decimal.Decimal(1), TypeError, r"Decimal is not an item: insert str\(item\)"),
    (range(3), TypeError, "range is not an item"),
    ((x for x in "a"), TypeError, "generator is not an item: use f.contains"),
    (array.array("i", [1]), TypeError, "array.array is not an item"),
    (memoryview(array.array("i", [1])), TypeError, "must have bytes: use view.cast"),
    (2**64, OverflowError, "64 bits.*18446744073709551616"),
    (-(2**63) - 1, OverflowError, "64 bits"),
    (10**100, OverflowError, "an int of 333 bits"),
    (1 << 10_000_000, OverflowError, "an int of 10000001 bits"),
    ((1, 2**64), OverflowError, "64 bits"),
    (Index(2**64), OverflowError, "64 bits"),
    (Index(2.5), TypeError, "float"),
    (Index(ZeroDivisionError("from __index__")), ZeroDivisionError, "from __index__"),
    ("\ud800", UnicodeEncodeError, "surrogates"),
    ("a\udfff", UnicodeEncodeError, "surrogates"),
    (Text("\ud800"), UnicodeEncodeError, "surrogates"),
    ((1, "\ud800"), UnicodeEncodeError, "surrogates"),
]
WRONG_IDS = [f"{i}-{type(row[0]).__name__}" for i, row in enumerate(WRONG)]


@pytest.mark.parametrize(("item", "error", "match"), WRONG, ids=WRONG_IDS)
def test_an_object_that_is_no_item_raises(item: Any, error: type[Exception], match: str) -> None:
    for f in (tamis.Bloom(100), tamis.DigestSet(), tamis.SharedBloom(100), tamis.Counting(100)):
        with pytest.raises(error, match=match):
            f.add(item)
        with pytest.raises(error, match=match):
            item in f
        for operation in (f.insert, f.contains, f.update):
            with pytest.raises(error, match=match):
                operation([item])
            with pytest.raises(error, match=match):
                operation(iter([1, item]))
        boxed = np.empty(1, dtype=object)
        boxed[0] = item
        with pytest.raises(error, match=match):
            f.insert(boxed)
        assert not f, "a failed insert inserts nothing"


@pytest.mark.parametrize(("item", "error", "match"), WRONG, ids=WRONG_IDS)
def test_the_other_operations_refuse_the_same_objects(
    item: Any, error: type[Exception], match: str
) -> None:
    f = tamis.Counting(100)
    for operation in (f.add_copy, f.remove, f.discard, f.count):
        with pytest.raises(error, match=match):
            operation(item)


def test_an_int_set_takes_integers_only() -> None:
    f = tamis.IntSet()
    for item in (0, 2**64 - 1, True, np.uint64(7), Index(9), Color.RED):
        f.add(item)
    assert len(f) == 6 and 1 in f and 7 in f and 9 in f and 5 in f
    for wrong in ("a", b"a", UUID, (1,), (1, 2), bytearray(b"a"), memoryview(b"a")):
        with pytest.raises(TypeError, match="an IntSet holds int items only"):
            f.add(wrong)
        with pytest.raises(TypeError, match="an IntSet holds int items only"):
            f.contains([wrong])
    for wrong in (-1, -(2**63), np.int8(-1)):
        with pytest.raises(ValueError, match="this one is negative"):
            f.add(wrong)
        with pytest.raises(ValueError, match="this one is negative"):
            f.insert([1, wrong])
    for batch in (np.array([3, -1]), pa.array([3, -1]), array.array("b", [3, -1])):
        with pytest.raises(ValueError, match="this one is negative"):
            f.insert(batch)
    for batch in (np.array(["a"]), pa.array(["a"]), np.array([b"a"])):
        with pytest.raises(TypeError, match="an IntSet holds int items only"):
            f.insert(batch)
    with pytest.raises(OverflowError):
        f.add(2**64)
    assert len(f) == 6


def test_an_object_whose_attribute_raises_passes_the_exception_on() -> None:
    class Shape:
        @property
        def shape(self) -> Any:
            raise ZeroDivisionError("from shape")

    class Length:
        def __len__(self) -> int:
            raise ZeroDivisionError("from len")

        def __index__(self) -> int:
            return 1

    class Hash(str):
        def __hash__(self) -> int:
            raise ZeroDivisionError("from hash")

        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError("from eq")

    f = tamis.Bloom(100)
    with pytest.raises(ZeroDivisionError, match="from shape"):
        f.add(Shape())
    with pytest.raises(TypeError, match="Length is not an item"):
        f.add(Length())
    assert not f
    # A filter calls neither __hash__ nor __eq__.
    assert f.add(Hash("a")) and "a" in f


def test_an_index_may_use_the_filter() -> None:
    f = tamis.Bloom(1_000)

    class Recursive:
        def __index__(self) -> int:
            f.add("inner")
            return 7

    assert f.add(Recursive()) and "inner" in f and 7 in f
    f.insert([Recursive(), Recursive()])
    f.update(np.array([Recursive()], dtype=object))
    assert f.contains([7, "inner"]) == [True, True]


def test_a_batch_is_not_a_single_item() -> None:
    f = tamis.Bloom(100)
    for one in ("abc", b"abc", bytearray(b"abc")):
        for operation in (f.contains, f.insert, f.update):
            with pytest.raises(TypeError, match="is one item, not a batch"):
                operation(one)
    for wrong in (5, None, 1.5, object()):
        for operation in (f.contains, f.insert, f.update):
            with pytest.raises(TypeError, match="not iterable"):
                operation(wrong)
    assert not f


def test_a_mixed_list_inserts_items_of_all_types() -> None:
    f = tamis.DigestSet()
    mixed = ["a", 1, b"b", (1, "x"), UUID, np.int8(3), True, bytearray(b"b")]
    assert f.insert(mixed) == [True, True, True, True, True, True, False, False]
    assert f.contains(mixed) == [True] * 8
    for form in (tuple(mixed), iter(mixed), {"a": 1}, {"a", 1}, frozenset([UUID]), range(1, 2)):
        assert all(f.contains(form))


def test_a_tuple_item_equals_the_tuple_of_other_programs() -> None:
    # The bytes of `(u64, &str)` in Rust, as `docs/formats/tamis.md` gives them.
    f = tamis.DigestSet()
    f.add(bytes.fromhex("07000000000000000300000000000000") + b"abc")
    assert (7, "abc") in f
