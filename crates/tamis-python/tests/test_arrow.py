"""Batches in pyarrow, and in objects with the Arrow PyCapsule interface."""

from __future__ import annotations

import decimal
import itertools
import uuid
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import tamis
from conftest import ALL_KINDS, Kind, each_kind

INTEGERS = [f(8 * 2**i) for i in range(4) for f in (lambda b: f"int{b}", lambda b: f"uint{b}")]
TEXTS = ["string", "large_string", "string_view"]
BYTES = ["binary", "large_binary", "binary_view"]


def tuples(value: Any) -> Any:
    """Return a value of a struct as the tuple of its parts; a null part makes a null."""
    if not isinstance(value, dict):
        return value
    parts = tuple(tuples(part) for part in value.values())
    return None if None in parts else parts


def items_of(array: Any) -> list[Any]:
    """Return the items of an array as Python objects. None stands for a null."""
    rows = array.to_pylist()
    if isinstance(array, (pa.Table, pa.RecordBatch)) and len(array.column_names) == 1:
        return [next(iter(row.values())) for row in rows]
    return [tuples(row) for row in rows]


def check(array: Any) -> None:
    """Insert and test an array, and compare the answers with those of single items."""
    items = items_of(array)
    f, g = tamis.DigestSet(), tamis.DigestSet()
    new = f.insert(array)
    assert new.to_pylist() == [item is not None and g.add(item) for item in items]
    assert f == g and f.skipped_nulls == items.count(None)
    h = tamis.DigestSet()
    assert h.update(array) is None and h == g and h.skipped_nulls == items.count(None)
    half = tamis.DigestSet()
    half.update([item for item in items[::2] if item is not None])
    for threads in (1, 2, 3, 4):
        found = half.contains(array, threads=threads)
        assert found.to_pylist() == [item is not None and item in half for item in items]
    for answers in (new, found):
        if isinstance(array, (pa.Array, pa.RecordBatch)):
            assert isinstance(answers, pa.BooleanArray)
        else:
            assert isinstance(answers, pa.ChunkedArray)
        assert answers.type == pa.bool_() and answers.null_count == 0
        answers.validate(full=True)


def check_all_forms(array: pa.Array) -> None:
    """Check an array, parts of the array, and the array in all containers."""
    check(array)
    for start, length in [(0, 3), (1, 4), (2, 0), (3, len(array)), (len(array), 5)]:
        check(array.slice(start, length))
    check(pa.chunked_array([array, array.slice(1, 3), array.slice(0, 0), array]))
    check(pa.chunked_array([], type=array.type))
    check(pa.record_batch({"x": array}))
    check(pa.record_batch({"x": array}).slice(1, 3))
    check(pa.table({"x": pa.chunked_array([array, array.slice(2)])}))
    check(pa.record_batch({"x": array, "y": array}).slice(1))
    check(pa.table({"x": array, "n": pa.array(range(len(array)))}).slice(1))
    check(pa.StructArray.from_arrays([array, array], ["x", "y"]).slice(1, 4))


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_of_each_type_have_their_items(name: str) -> None:
    info = np.iinfo(name)
    values = [info.min, info.max, 0, 1, 5, info.max // 2, info.min // 2, 5]
    kind = getattr(pa, name)()
    check_all_forms(pa.array(values, kind))
    check_all_forms(pa.array([None, *values, None, 7], kind))
    check_all_forms(pa.array([None] * 5, kind))


@pytest.mark.parametrize("name", [*TEXTS, *BYTES])
def test_text_and_bytes_of_each_type_have_their_items(name: str) -> None:
    texts = ["", "a", "é", "😀", "a\0b", "x" * 100, "thirteen bytes", "a"]
    values: list[Any] = texts if name in TEXTS else [text.encode() for text in texts]
    kind = getattr(pa, name)()
    check_all_forms(pa.array(values, kind))
    check_all_forms(pa.array([None, *values, None, values[3]], kind))
    check_all_forms(pa.array([None] * 5, kind))


def test_bytes_of_a_fixed_size_have_their_items() -> None:
    check_all_forms(pa.array([b"abc", b"\0\0\0", b"abc", b"xyz", b"abd"], pa.binary(3)))
    check_all_forms(pa.array([b"abc", None, b"abc", None, b"abd"], pa.binary(3)))
    check_all_forms(pa.array([b"", b"", None, b"", b""], pa.binary(0)))
    uuids = pa.array([bytes(range(16)), None, bytes(16), None, bytes(16)], pa.binary(16))
    f = tamis.DigestSet()
    f.update(uuids)
    assert uuid.UUID(bytes=bytes(range(16))) in f
    if hasattr(pa, "uuid"):
        extension = pa.array([bytes(range(16)), None], pa.uuid())
        assert f.contains(extension).to_pylist() == [True, False]


@pytest.mark.parametrize("index", ["int8", "uint16", "int32", "int64"])
@pytest.mark.parametrize("name", ["string", "binary", "int32", "uint64", "large_string"])
def test_a_dictionary_has_the_items_of_its_values(index: str, name: str) -> None:
    values: list[Any] = ["a", "b", None, "c", "a"]
    if name == "binary":
        values = [value and value.encode() for value in values]
    elif "int" in name:
        values = [1, 2, None, 3, 1]
    indices = pa.array([0, None, 2, 1, 4, 3, 3, None, 0], getattr(pa, index)())
    check_all_forms(pa.DictionaryArray.from_arrays(indices, pa.array(values, getattr(pa, name)())))
    no_null = pa.array([0, 1, 1, 3, 0, 4], getattr(pa, index)())
    check_all_forms(pa.DictionaryArray.from_arrays(no_null, pa.array(values, getattr(pa, name)())))


def test_a_dictionary_without_values_has_nulls_only() -> None:
    check_all_forms(pa.array([None] * 5, pa.string()).dictionary_encode())
    empty = pa.array([], pa.string())
    check(pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), empty))
    check(pa.DictionaryArray.from_arrays(pa.array([], pa.int8()), empty))


def test_a_dictionary_of_tuples_has_the_items_of_its_tuples() -> None:
    values = pa.array([{"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"x": 3, "y": ""}])
    check(pa.DictionaryArray.from_arrays(pa.array([0, 2, 1, None, 0], pa.int8()), values))


def test_an_int_set_takes_a_dictionary_whose_unused_value_is_negative() -> None:
    used = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array([5, -1]))
    f = tamis.IntSet()
    try:
        f.update(used)
    except (TypeError, ValueError) as error:
        # All values of a dictionary are converted; the error is the error of the value.
        assert "negative" in str(error)


def test_run_of_equal_chunks_with_other_dictionaries_has_its_items() -> None:
    chunks = [pa.array(part).dictionary_encode() for part in (["a", "b"], ["b", "c", None], ["d"])]
    check(pa.chunked_array(chunks))
    check(pa.table({"x": pa.chunked_array(chunks)}))


def test_a_struct_is_a_tuple_and_a_null_part_makes_the_row_null() -> None:
    rows = [
        {"x": 1, "y": "a"},
        None,
        {"x": None, "y": "b"},
        {"x": 3, "y": None},
        {"x": 1, "y": "a"},
    ]
    array = pa.array(rows)
    check(array)
    check(array.slice(1))
    check(array.slice(2, 2))
    check(pa.chunked_array([array, array.slice(3)]))
    f = tamis.DigestSet()
    assert f.insert(array).to_pylist() == [True, False, False, False, False]
    assert (1, "a") in f and len(f) == 1 and f.skipped_nulls == 3
    nested = pa.array([{"a": 1, "b": {"c": 2, "d": "x"}}, {"a": 1, "b": None}, None])
    check(nested)
    check(nested.slice(1))


@pytest.mark.parametrize("values", [["a", "b", None], [1, 2, None]])
def test_a_struct_of_one_field_is_the_array_of_the_field(values: list[Any]) -> None:
    rows: list[Any] = [{"x": value} for value in values]
    for array in (pa.array(rows), pa.array([*rows, None]), pa.array([None, *rows]).slice(1)):
        f = tamis.DigestSet()
        f.update(array)
        assert f.contains(values[:2]) == [True, True] and len(f) == 2
        assert f.contains(array).to_pylist() == [
            row is not None and row["x"] in values[:2] for row in array.to_pylist()
        ]
    dictionary = pa.array(["a", "b", None]).dictionary_encode()
    struct = pa.StructArray.from_arrays([dictionary], ["x"], mask=pa.array([False, True, False]))
    f = tamis.DigestSet()
    assert f.insert(struct).to_pylist() == [True, False, False] and "a" in f and len(f) == 1


def test_a_null_array_has_nulls_only() -> None:
    check_all_forms(pa.nulls(5))
    f = tamis.IntSet()
    assert f.insert(pa.nulls(3)).to_pylist() == [False] * 3 and f.skipped_nulls == 3


def test_nulls_are_counted_over_all_batches() -> None:
    f = tamis.Bloom(100)
    array = pa.array([1, None, 2, None])
    f.insert(array)
    f.contains(array)
    f.update(pa.chunked_array([array, array]))
    assert f.skipped_nulls == 8
    assert f.copy().skipped_nulls == 0


def test_an_array_with_a_mask_beyond_eight_bits_has_its_nulls() -> None:
    values = [None if i % 3 == 0 else i for i in range(50_000)]
    for offset in (0, 1, 7, 8, 9, 63, 64, 8_191, 8_192):
        check(pa.array(values, pa.int32()).slice(offset, 20_000))
    check(pa.array([None if v is None else str(v) for v in values]).slice(13, 30_000))


def test_a_reader_of_batches_is_a_stream() -> None:
    schema = pa.schema({"x": pa.int64()})
    parts = [pa.record_batch({"x": [1, 2, None]}), pa.record_batch({"x": [2, 3]})]
    f = tamis.DigestSet()
    answers = f.insert(pa.RecordBatchReader.from_batches(schema, iter(parts)))
    assert isinstance(answers, pa.ChunkedArray)
    assert answers.to_pylist() == [True, True, False, False, True]
    assert [len(chunk) for chunk in answers.chunks] == [3, 2] and f.skipped_nulls == 1
    empty = f.contains(pa.RecordBatchReader.from_batches(schema, iter([])))
    assert empty.to_pylist() == [] and empty.type == pa.bool_()
    calls: list[Any] = []
    reader = pa.RecordBatchReader.from_batches(schema, iter(parts))
    f.contains(reader, progress=lambda *call: calls.append(call))
    assert calls == [(3, None), (5, None)]
    calls.clear()
    f.contains(pa.table({"x": [1, 2]}), progress=lambda *call: calls.append(call))
    assert calls == [(2, 2)]


def test_an_exception_in_a_stream_ends_the_batch() -> None:
    def batches() -> Any:
        yield pa.record_batch({"x": [1, 2]})
        raise ZeroDivisionError("from the stream")

    f = tamis.DigestSet()
    reader = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), batches())
    with pytest.raises(Exception, match="from the stream"):
        f.insert(reader)
    assert len(f) == 2, "the items of the first batch are in the set"


def test_a_stream_may_use_the_filter() -> None:
    f = tamis.DigestSet()

    def batches() -> Any:
        for i in range(5):
            f.add(-i)
            yield pa.record_batch({"x": [i, i + 100]})

    f.update(pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), batches()))
    assert len(f) == 14


UNSUPPORTED = [
    pa.array([1.5]),
    pa.array([1.5], pa.float32()),
    pa.array([True]),
    pa.array([decimal.Decimal("1.5")]),
    pa.array([0], pa.date32()),
    pa.array([0], pa.timestamp("us")),
    pa.array([0], pa.time64("ns")),
    pa.array([0], pa.duration("s")),
    pa.array([[1, 2]]),
    pa.array([[1, 2]], pa.list_(pa.int64(), 2)),
    pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    pa.array([{}], pa.struct([])),
    pa.array([{"x": 1, "y": 1.5}]),
    pa.array([1.5]).dictionary_encode(),
    pa.array([1, 1, 2]).run_end_encode()
    if hasattr(pa.Array, "run_end_encode")
    else pa.array([[1]]),
    pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
]


@pytest.mark.parametrize("array", UNSUPPORTED, ids=[str(array.type) for array in UNSUPPORTED])
def test_a_type_without_items_raises_and_names_the_way(array: Any) -> None:
    for f in (tamis.Bloom(10), tamis.DigestSet(), tamis.IntSet()):
        for operation in (f.contains, f.insert, f.update):
            for form in (array, pa.chunked_array([array]), pa.table({"x": array})):
                with pytest.raises(TypeError, match="cast (it|the array) to integers"):
                    operation(form)
        assert not f


@pytest.mark.parametrize("array", UNSUPPORTED, ids=[str(array.type) for array in UNSUPPORTED])
def test_a_tuple_with_such_a_part_raises(array: Any) -> None:
    table = pa.table({"n": pa.array([1] * len(array)), "x": array})
    with pytest.raises(TypeError, match="cast (it|the array) to integers"):
        tamis.Bloom(10).contains(table)


def test_a_table_without_columns_has_no_items() -> None:
    f = tamis.Bloom(10)
    assert f.contains(pa.table({})).to_pylist() == []
    with pytest.raises(TypeError, match="cannot be used as items"):
        f.contains(pa.table({"x": [1, 2]}).select([]))


def test_arrays_whose_memory_is_not_aligned_are_read() -> None:
    data = np.arange(1, 11, dtype=np.int64).tobytes()
    for offset in (1, 3, 4):
        buffer = pa.py_buffer(b"\0" * offset + data).slice(offset)
        check(pa.Array.from_buffers(pa.int64(), 10, [None, buffer]))
    offsets = pa.py_buffer(b"\0" + np.array([0, 1, 3], np.int32).tobytes()).slice(1)
    check(pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abc")]))


class Capsules:
    """An object of an unknown library, which gives the same capsules every time."""

    def __init__(self, array: Any) -> None:
        self.array = array.__arrow_c_array__() if hasattr(array, "__arrow_c_array__") else None
        self.stream = array.__arrow_c_stream__() if self.array is None else None


class OneArray(Capsules):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.array


class OneStream(Capsules):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.stream


def test_an_object_of_an_unknown_library_gets_arrow_booleans() -> None:
    f = tamis.DigestSet()
    answers = f.insert(OneArray(pa.array([1, None, 1, 2])))
    assert type(answers) is tamis.Booleans and len(answers) == 4
    assert pa.array(answers).to_pylist() == [True, False, False, True]
    assert pa.array(answers).to_pylist() == [True, False, False, True], "it can be read again"
    answers = f.contains(OneStream(pa.table({"x": [1, 3]})))
    assert pa.array(answers).to_pylist() == [True, False]


@pytest.mark.parametrize("threads", [1, 3])
def test_answers_of_chunks_of_any_length_are_joined_in_order(threads: int) -> None:
    # 200,000 rows have a part for each thread, whose length is no multiple of 64.
    lengths = [0, 1, 63, 64, 65, 1_000, 200_001, 7]
    values: list[int | None] = [None if i % 11 == 0 else i for i in range(sum(lengths))]
    f = tamis.DigestSet()
    f.update(i for i in range(0, len(values), 3))
    expected = [value is not None and value % 3 == 0 for value in values]
    ends = list(itertools.accumulate(lengths, initial=0))
    chunks = [pa.array(values[a:b], pa.int64()) for a, b in itertools.pairwise(ends)]
    chunked = pa.chunked_array(chunks)
    assert f.contains(chunked, threads=threads).to_pylist() == expected
    answers = f.contains(OneStream(pa.table({"x": chunked})), threads=threads)
    assert list(answers) == expected and pa.array(answers).to_pylist() == expected
    polars_series = pl.concat([pl.Series(chunk) for chunk in chunks], rechunk=False)
    assert f.contains(polars_series, threads=threads).to_list() == expected


def test_a_uuid_column_has_the_items_of_uuids_also_in_tuples() -> None:
    uuids = [uuid.UUID(int=i * 7919) for i in range(5)]
    column = pa.array([item.bytes for item in uuids], pa.uuid())
    rows = pa.StructArray.from_arrays([column, pa.array(range(5))], ["u", "n"])
    nested = pa.StructArray.from_arrays([pa.array(["a"] * 5), rows], ["a", "b"])
    for kind in (tamis.DigestSet, lambda: tamis.Bloom(100)):
        f = kind()
        f.update(uuids)
        assert f.contains(column).to_pylist() == [True] * 5
        f = kind()
        f.update((item, i) for i, item in enumerate(uuids))
        f.update(("a", (item, i)) for i, item in enumerate(uuids))
        assert f.contains(rows).to_pylist() == [True] * 5
        assert f.contains(pa.table({"u": column, "n": range(5)})).to_pylist() == [True] * 5
        assert f.contains(nested).to_pylist() == [True] * 5
        # Bytes that are no UUID have a length in a tuple.
        plain = column.cast(pa.binary(16))
        other = pa.StructArray.from_arrays([plain, pa.array(range(5))], ["u", "n"])
        assert f.contains(other).to_pylist() == [False] * 5


def test_an_error_of_a_value_of_a_dictionary_keeps_its_class() -> None:
    f = tamis.IntSet()
    with pytest.raises(ValueError, match="negative"):
        f.insert(pa.array([1, -1]).dictionary_encode())


def test_booleans_are_a_sequence() -> None:
    answers = tamis.DigestSet().insert(OneArray(pa.array([1, 1, None, 2])))
    assert list(answers) == [True, False, False, True]
    assert answers[-1] is True and answers[1] is False
    for index in (4, -5, 2**62, -(2**62)):
        with pytest.raises(IndexError, match=f"{index} of 4"):
            answers[index]
    assert list(tamis.Booleans(65)) == tamis.Booleans(65).tolist() == [False] * 65
    assert repr(answers) == "<tamis.Booleans of 4: [True, False, False, True]>"
    assert repr(tamis.Booleans(99)).endswith("False, ...]>")
    for too_large in (2**62, 2**63, 2**64 - 1):
        with pytest.raises((MemoryError, OverflowError)):
            tamis.Booleans(too_large)


def test_a_capsule_that_was_taken_before_raises() -> None:
    f = tamis.DigestSet()
    array, stream = OneArray(pa.array([1, 2])), OneStream(pa.table({"x": [1, 2]}))
    for batch in (array, stream):
        f.contains(batch)
        for operation in (f.contains, f.insert, f.update):
            with pytest.raises(ValueError, match="already"):
                operation(batch)


@pytest.mark.parametrize("wrong", [None, 5, (), (1, 2), (1, 2, 3), "x", object()])
def test_an_object_with_other_values_than_capsules_raises(wrong: Any) -> None:
    class Array:
        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            return wrong

    class Stream:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return wrong

    for batch in (Array(), Stream()):
        with pytest.raises((TypeError, ValueError)):
            tamis.Bloom(10).contains(batch)


def test_capsules_of_other_names_raise() -> None:
    schema, array = pa.array([1]).__arrow_c_array__()
    stream = pa.table({"x": [1]}).__arrow_c_stream__()

    class Wrong:
        def __init__(self, value: Any) -> None:
            self.value = value

        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            return self.value

    for value in ((array, schema), (schema, schema), (schema, stream), (stream, array)):
        with pytest.raises((TypeError, ValueError)):
            tamis.Bloom(10).contains(Wrong(value))


def test_an_exception_in_the_interface_is_passed_on() -> None:
    class Fails:
        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            raise ZeroDivisionError("from the interface")

    with pytest.raises(ZeroDivisionError, match="from the interface"):
        tamis.Bloom(10).contains(Fails())


@each_kind(ALL_KINDS)
def test_all_kinds_give_the_answers_of_single_items(kind: Kind) -> None:
    rng = np.random.default_rng(8)
    f = kind.create()
    inserted = rng.integers(0, 2**62, 3_000)
    f.update(pa.array(inserted))
    probes = np.concatenate([inserted[::3], rng.integers(0, 2**62, 100_000)])
    mask = rng.integers(0, 5, len(probes)) == 0
    array = pa.array(probes, mask=mask)
    single = [not null and item in f for item, null in zip(probes.tolist(), mask, strict=True)]
    for threads in (1, 2, 4):
        assert f.contains(array, threads=threads).to_pylist() == single
    chunks = [array.slice(i, 9_999) for i in range(0, len(array), 9_999)]
    chunked = f.contains(pa.chunked_array(chunks))
    assert chunked.to_pylist() == single and chunked.num_chunks == len(chunks)


def test_dictionaries_in_tuples_are_encoded_once_for_all_parts_of_an_array() -> None:
    # Without the cache, each part of 512 rows would encode all values: 40,000,000 values.
    n = 100_000
    text = pa.array([f"value {i}" for i in range(n)])
    table = pa.table({"n": range(n), "t": text.dictionary_encode()})
    f = tamis.DigestSet()
    f.update(table)
    assert (7, "value 7") in f and (n - 1, f"value {n - 1}") in f and len(f) == n
    nested = pa.array([{"x": {"y": "a"}}, {"x": None}, {"x": {"y": None}}])
    rows = pa.table({"n": [1, 2, 3], "s": nested})
    assert tamis.DigestSet().insert(rows).to_pylist() == [True, False, False]


def test_a_dictionary_of_uuids_in_a_tuple_raises() -> None:
    uuids = pa.array([uuid.UUID(int=i).bytes for i in range(2)], pa.uuid())
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int16()), uuids)
    f = tamis.DigestSet()
    with pytest.raises(TypeError, match="dictionary of 16 bytes"):
        f.insert(pa.table({"n": [1, 2, 3], "u": column}))
    assert f.insert(column).to_pylist() == [True, True, False] and uuid.UUID(int=1) in f
